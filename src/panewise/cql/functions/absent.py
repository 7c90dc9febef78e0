"""Functions of other systems that are not on the list, and what to write instead."""

from __future__ import annotations

from panewise.cql.functions.catalogue import suggest_instead

suggest_instead(
    "an expression is one value: write one for each column", "UNNEST", "COLUMNS", "INLINE", "STACK", "JSON_TUPLE"
)
suggest_instead("unfold arrays before the rows come here", "EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER")
suggest_instead(
    "windows stand in brackets after a stream, such as FROM S [ROWS 10]",
    *("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD", "NTH_VALUE"),
)
suggest_instead(
    "add a column that says it: it is no property of the rows",
    *("CURRENT_USER", "USER", "SESSION_USER", "CURRENT_DATABASE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "VERSION"),
    *("INPUT_FILE_NAME", "SPARK_PARTITION_ID", "TYPEOF", "JAVA_METHOD", "REFLECT"),
)
suggest_instead("use TRY_CAST(x AS DOUBLE) IS NOT NULL", "ISNUMERIC", "IS_NUMERIC", "ISNUMBER")
suggest_instead("use TRY_CAST", "SAFE_CAST")
suggest_instead("use CAST(x AS type)", "CONVERT", "TO_VARCHAR", "TO_DOUBLE", "TO_DECIMAL", "TO_BOOLEAN")
suggest_instead("use TRY_DIVIDE", "SAFE_DIVIDE", "DIV0")
suggest_instead("use CAST(x AS BIGINT), which cuts digits off, or ROUND", "TRUNCATE")
suggest_instead("use HEX, UNHEX or BIN", "CONV")
suggest_instead("use IF or CASE", "IFELSE", "IIF", "CHOOSE")
suggest_instead("use COALESCE", "IFNAN", "VALUE")
suggest_instead(
    "use DATE_FORMAT", "STRFTIME", "TO_CHAR", "TO_VARCHAR", "FORMAT_DATE", "FORMAT_TIMESTAMP", "DATETIME_FORMAT"
)
suggest_instead("use TO_TIMESTAMP", "STRPTIME", "PARSE_TIMESTAMP", "PARSE_DATETIME", "STR_TO_DATE", "DATETIME")
suggest_instead("use UNIX_TIMESTAMP, UNIX_MILLIS or UNIX_MICROS", "EPOCH", "EPOCH_MS", "EPOCH_US", "TO_UNIXTIME")
suggest_instead("use TIMESTAMPDIFF", "DATETIME_DIFF", "TIMESTAMP_DIFF", "AGE")
suggest_instead("use ARRAY", "LIST_VALUE", "LIST", "MAKE_ARRAY")
suggest_instead("use SPLIT", "STRING_SPLIT", "STR_SPLIT", "STRING_TO_ARRAY")
suggest_instead("use REGEXP_LIKE", "REGEXP_MATCHES", "REGEXP_MATCH", "REGEXP_CONTAINS")
suggest_instead("use LOCATE or INSTR", "STRPOS", "INDEXOF")
suggest_instead(
    "parse JSON before the rows come here", "FROM_JSON", "GET_JSON_OBJECT", "JSON_VALUE", "JSON_EXTRACT", "PARSE_JSON"
)
