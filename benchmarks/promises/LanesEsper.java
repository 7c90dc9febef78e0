import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPDeployment;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Answers lanes by Esper for lanes_esper.py, which starts this and writes a command a line.
 *
 * <p>{@code query EPL} compiles and deploys a query; {@code rows N PATH} reads the first rows of a file of 64-bit
 * integers, t, k and v of each row; {@code run} sends these rows to the query and takes all its results. Every command
 * is answered by a line of JSON when it is done. Each run begins with empty windows, in the code that Esper generated
 * when the query was deployed: a query that is deployed again is compiled again, so that it would never be warm.
 */
public final class LanesEsper {
    public static final class Row {
        private final long t, k, v;

        Row(long t, long k, long v) {
            this.t = t;
            this.k = k;
            this.v = v;
        }

        public long getT() { return t; }
        public long getK() { return k; }
        public long getV() { return v; }
    }

    /** From here on windows are empty. */
    public static final class RunBegins {}

    /** Esper forgets all windows. */
    public static final class RunEnds {}

    private final Configuration configuration = new Configuration();
    private final EPRuntime runtime;
    private Row[] rows = {};

    /** How many results there were in this run, and the last one of each key: nothing is left out as unused. */
    private long results;
    private final Map<Object, Object> last = new HashMap<>();

    private LanesEsper() {
        for (Class<?> type : new Class<?>[] {Row.class, RunBegins.class, RunEnds.class}) {
            configuration.getCommon().addEventType(type);
        }
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
    }

    public static void main(String[] arguments) throws Exception {
        LanesEsper lanes = new LanesEsper();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            switch (words[0]) {
                case "query" -> lanes.deploy(words[1]);
                case "rows" -> lanes.read(words[1].split(" ", 2));
                case "run" -> lanes.run();
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println(lanes.report());
        }
    }

    private void deploy(String query) throws Exception {
        String text = "create context Run start RunBegins end RunEnds; @name('q') context Run " + query;
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(text, new CompilerArguments(configuration));
        runtime.getDeploymentService().undeployAll();
        EPDeployment deployed = runtime.getDeploymentService().deploy(compiled);
        runtime.getDeploymentService()
            .getStatement(deployed.getDeploymentId(), "q")
            .addListener((entered, left, statement, from) -> take(entered));
    }

    private void take(EventBean[] entered) {
        for (EventBean result : entered) {
            last.put(result.get("k"), result.get("a"));
        }
        results += entered.length;
    }

    private void read(String[] countAndPath) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(countAndPath[1])));
        LongBuffer numbers = bytes.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        rows = new Row[Integer.parseInt(countAndPath[0])];
        for (int row = 0; row < rows.length; row++) {
            rows[row] = new Row(numbers.get(), numbers.get(), numbers.get());
        }
    }

    private void run() {
        EPEventService events = runtime.getEventService();
        results = 0;
        last.clear();
        events.sendEventBean(new RunBegins(), "RunBegins");
        EventSender sender = events.getEventSender("Row");
        for (Row row : rows) {
            sender.sendEvent(row);
        }
        events.sendEventBean(new RunEnds(), "RunEnds");
    }

    /** The number of results, and the sum of the last ones of all keys; a key without rows has none. */
    private String report() {
        double sum = 0;
        for (Object value : last.values()) {
            sum += value == null ? 0 : ((Number) value).doubleValue();
        }
        return "{\"results\": " + results + ", \"sum\": " + sum + "}";
    }
}
