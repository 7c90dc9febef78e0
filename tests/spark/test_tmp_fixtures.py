from __future__ import annotations
import subprocess, sys, time
from pathlib import Path
import pyarrow as pa
from pyspark.sql import SparkSession

def test_spark(spark: SparkSession, tmp_path: Path) -> None:
    def go(bs):
        import panewise
        for b in bs: yield b
    assert spark.range(10).mapInArrow(go, "id long").count() == 10
    assert spark.range(3).toPandas()["id"].tolist() == [0,1,2]
    assert spark.range(3).toArrow().num_rows == 3
    spark.createDataFrame(pa.table({"a":[1,2]})).collect()
    import pandas as pd
    spark.createDataFrame(pd.DataFrame({"a":[1,2]})).collect()
    got=[]
    spark.range(5).write.parquet(str(tmp_path/"in"))
    q=spark.readStream.schema("id long").parquet(str(tmp_path/"in")).writeStream.foreachBatch(lambda df,i: got.append(df.count())).option("checkpointLocation",str(tmp_path/"ck")).trigger(availableNow=True).start()
    q.awaitTermination()
    assert got==[5]

def test_kafka(spark: SparkSession, kafka: str) -> None:
    o={"kafka.bootstrap.servers":kafka}
    spark.range(100).selectExpr("cast(id as string) value").write.format("kafka").options(**o).option("topic","t").save()
    assert spark.read.format("kafka").options(**o).option("subscribe","t").load().count()==100

def test_connect(connect: str) -> None:
    code="""
import sys
from pyspark.sql import SparkSession
s=SparkSession.builder.remote(sys.argv[1]).getOrCreate()
def go(bs):
    import panewise
    yield from bs
print(s.range(7).mapInArrow(go,'id long').count())
s.stop()
"""
    r=subprocess.run([sys.executable,"-W","error","-c",code,connect],capture_output=True,text=True)
    assert r.stdout.strip()=="7", r.stderr
    print(r.stderr)
