"""Wrong calls. `baseline.py` records their messages and exit codes.

`LINES` are command lines, with the words of `baseline_cases.SHORT`; `CALLS` are calls of functions,
over the names of `baseline_cases.world`.
"""

from __future__ import annotations

LINES = """
top/no-command  ""
top/unknown  repotr a.parquet
top/option  --loud report a.parquet
guide/unknown  guide tie
measures/unknown  measures mmr
formats/argument  formats x
demo/seed  demo --seed -1
demo/exists  demo --output a.npy

rank/no-graph  rank --scores a.npy -o out.parquet
rank/no-output  rank $g --scores a.npy
rank/no-scores  rank $g -o out.parquet
rank/two  rank $g --scores a.npy --predictions lists.run --predictions-format trec -o out.parquet
rank/format-missing  rank --graph small/tsv --predictions lists.run -o out.parquet
rank/format-alone  $rank --format trec
rank/format-unknown  rank $g --predictions lists.run --predictions-format other -o out.parquet
rank/unlinkable  $rank --unlinkable drop
rank/predictions-nan  rank --graph small/tsv --predictions lists.jsonl --predictions-format jsonl
    --nan worst -o
    o
rank/missing-graph  rank --graph nowhere --scores a.npy -o out.parquet
rank/missing-scores  rank $g --scores nowhere.npy -o out.parquet
rank/missing-folder  rank $g --scores a.npy -o nowhere/out.parquet
rank/overwrite-scores  rank $g --scores a.npy -o a.npy
rank/overwrite-graph  $rank --write-qrels demo/graph/train.txt
rank/overwrite-itself  $rank --write-run out.parquet
rank/empty-output  rank $g --scores a.npy -o ""
rank/split  $rank --split tset
rank/sides  $rank --sides left
rank/context  $rank --context time
rank/context-missing  rank --graph timed:timed --scores timed.npy -o out.parquet
rank/context-filter  rank --graph timed:timed --context time --filter valid --scores timed.npy -o
    out.parquet
rank/qualifier  $rank --sides qualifier
rank/filter  $rank --filter tset
rank/filter-comma  $rank --filter train,
rank/filters-one-file  $rank --filter raw --filter test
rank/filters-twice  rank $g --scores a.npy -o 'out-{filter}.parquet' --filter raw --filter raw
rank/depth  $rank --run-depth 0
rank/depth-word  $rank --run-depth many
rank/tag  $rank --write-run out.run --tag 'a b'
rank/tag-empty  $rank --write-run out.run --tag ''
rank/threads  $rank --threads 0
rank/atol  $rank --atol -1
rank/rtol  $rank --rtol nan
rank/nan  $rank --nan best
rank/nan-found  rank $g --scores nan.npy -o out.parquet
rank/columns  $rank --score-columns candidates
rank/candidates-both  $rank --candidates candidates.tsv --type-constraints
    small/openke/type_constrain.txt
rank/relation-sides  $rank --sides relation
rank/rows  $rank --rows instances
rank/url  rank --graph https://x/y --scores a.npy -o out.parquet
rank/url-s3  rank $g --scores s3:// -o out.parquet
rank/relations-none  $rank --relations relations.txt --entities unknown.txt
shard/form  rank $g --scores a.npy --shard 3 -o shards
shard/range  rank $g --scores a.npy --shard 4/3 -o shards
shard/zero  rank $g --scores a.npy --shard 0/3 -o shards
shard/run  rank $g --scores a.npy --shard 1/3 -o shards --write-run out.run
shard/plan-alone  $rank --plan
shard/by-alone  $rank --shard-by entities
shard/memory-alone  $rank --memory 2GB
shard/memory  rank $g --scores a.npy --shard 1/3 -o shards-x --memory much
shard/memory-small  rank $g --scores a.npy --shard 1/3 -o shards-x --memory 1KB
shard/other-inputs  rank $g --scores b.npy --shard 1/3 -o shards --run-depth 30
shard/predictions  rank --graph small/tsv --predictions lists.jsonl --predictions-format jsonl
    --shard 1/2 -o
    shards-x
shard/candidates  rank $g --scores a.npy -o shards-x --shard 1/2 --shard-by entities --candidates
    candidates.tsv
shard/filters  rank $g --scores a.npy -o shards-x --shard 1/2 --filter raw --filter test
merge/missing  merge nowhere -o out.parquet
merge/no-shards  merge demo -o out.parquet
merge/depth  merge shards -o out.parquet --write-run out.run --run-depth 500
merge/into-folder  merge shards -o shards
batch/missing  batch nowhere.toml
batch/workers  batch jobs.toml --workers 0
batch/patience  batch jobs.toml --patience 0
batch/scheduler  batch jobs.toml --scheduler here

align/nothing  align --pairs align/pairs.tsv -o out.parquet
align/both  align $embeddings --matrix align/matrix.npy -o out.parquet
align/one  align --left align/left.npy --pairs align/pairs.tsv -o out.parquet
align/no-output  align $embeddings
align/sizes-output  align $embeddings --sizes 20 -o out.parquet
align/sizes  align $embeddings --sizes 0,5
align/sizes-word  align $embeddings --sizes many
align/sizes-large  align $embeddings --sizes 1000
align/plot  align $embeddings -o out.parquet --plot out.svg
align/similarity  align --matrix align/matrix.npy --pairs align/pairs.tsv --similarity dot -o o
align/labels  align $embeddings --left-labels align/l.txt -o out.parquet
align/repeats  align $embeddings --repeats 3 -o out.parquet

classify/no-test  classify --valid-triples classify/valid.tsv
classify/bins  classify $classified --bins 1
classify/ci  classify $classified --ci 100
classify/resamples  classify $classified --resamples 1
classify/scores-twice  classify $classified --test-scores classify/test.npy
classify/negatives  classify $classified --test-negatives classify/test-false.tsv
classify/missing  classify --valid-triples nowhere.tsv --test-triples classify/test.tsv
classify/plot  classify $classified --plot out.doc
semantics/no-run  semantics $g
semantics/k  semantics $g a.run --k 0,3
semantics/k-word  semantics $g a.run --k x
semantics/observed  semantics $g a.run --observed tset
semantics/types  semantics $g a.run --entity-types types.tsv
semantics/both  semantics $g a.run --observed train --entity-types types.tsv --relation-types
    roles.tsv
semantics/ci  semantics $g a.run --ci 0
semantics/queries  semantics $g trec/r.run
semantics/missing  semantics $g nowhere.run
semantics/twice  semantics $g a.run a.run
estimate/nothing  estimate $g
estimate/size  estimate $g --scores a.npy --size 3
estimate/by  estimate $g --scores a.npy --draw-by luck
estimate/full  estimate $g --scores a.npy --full -1
estimate/columns  estimate $g --scores a.npy --score-columns candidates
estimate/full-questions  estimate $g --scores a.npy --write-full-questions q.npy
estimate/constraints  estimate $g --scores a.npy --draw-by uniform --type-constraints
    small/openke/type_constrain.txt
estimate/ci  estimate $g --scores a.npy --ci 100
estimate/within  estimate $g --scores a.npy --half-width 0

report/missing  report nowhere.parquet
report/run  report a.run
report/folder  report demo
report/columns  report $abc --columns mrr,mmr
report/columns-empty  report $abc --format latex --columns ,
report/side  report $abc --columns mrr --side left
report/columns-measures  report $abc --columns mrr -m mr
report/side-alone  report $abc --side head
report/typst  report $abc --by side --format typst
report/test-by  report $abc --by side --test t
report/json-columns  report $abc --format json --columns mrr
report/level  report $abc --format latex --level 0.1
report/level-range  report $abc --format latex --test t --level 1
report/names  report $abc --format latex --name A
report/names-twice  report $abc --format csv --name A --name A --name B
report/digits  report $abc --format latex --digits 18
report/test  report $abc --format latex --test f
report/by  report a.parquet --by colour
report/by-graph  report a.parquet --by category
report/by-other-graph  report a.parquet --by category --graph half/graph
report/by-label  report a.parquet --by label
report/labels-alone  report a.parquet --labels labels.tsv
report/graph-alone  report a.parquet $g
report/spread-alone  report a.parquet --spread
report/by-time  report a.parquet --by time
report/html-output  report a.parquet --html out.html -o out.txt
report/html-by  report a.parquet --html out.html --by side
report/html-run  report $abc --html out.html --run a.run
report/run-alone  report a.parquet --run a.run
report/html-folder  report a.parquet --html nowhere/out.html
report/output-input  report a.parquet -o a.parquet
report/ratios-by  report a.parquet --ratios half.tsv --by side
report/rank-types-by  report a.parquet --rank-types --by side
report/measure  report a.parquet -m hits@
report/measure-cut  report a.parquet -m hits@0
report/measure-power  report a.parquet -m p_mrr@2
report/measure-trec  report a.parquet -m both.micro.map
report/measure-averaging  report a.parquet -m both.nano.mrr
report/measure-rank-type  report a.parquet -m both.hopeful.micro.mrr
report/measure-triple  report a.parquet -m head.triple.mrr
report/measure-alias  report a.parquet -m mean_reciprocal_rnak
report/measure-stratified  report a.parquet -m stratified.mrr
report/relation-side  report relation.parquet -m head.mrr
plot/kind  plot bars a.parquet -o out.svg
plot/no-output  plot ranks a.parquet
plot/ending  plot ranks a.parquet -o out.doc
plot/metric  plot beta-grid -m mmr a.parquet -o out.svg
plot/metrics  plot beta-grid -m mr -m mrr a.parquet -o out.svg
plot/metric-ranks  plot ranks -m mrr a.parquet -o out.svg
plot/files  plot beta-grid a.parquet b.parquet -o out.svg
plot/side  plot ranks --side relation a.parquet -o out.svg
plot/times  plot times a.parquet -o out.svg
plot/names  plot ranks a.parquet b.parquet --name A -o out.svg
plot/style  plot ranks a.parquet --style size=big -o out.svg
plot/style-key  plot ranks a.parquet --style colour=red -o out.svg
plot/style-range  plot ranks a.parquet --style width=0 -o out.svg
plot/folder  plot ranks a.parquet -o nowhere/out.svg
plot/overwrite  plot ranks a.parquet -o a.parquet

compare/one  compare a.parquet
compare/twice  compare a.parquet a.parquet
compare/other-graph  compare a.parquet half/a.parquet
compare/other-filter  compare a.parquet raw.parquet
compare/sampled  compare a.parquet sampled.parquet
compare/amri  compare $abc -m both.micro.amri
compare/bpref  compare $abc -m both.macro.num_ret
compare/measure  compare $abc -m mapp
compare/stability-test  compare stability $abc --test t
compare/permutations  compare $abc --test t --permutations 10
compare/draws  compare $abc --resamples 10
compare/confidence  compare $abc --ci 100
compare/level  compare $abc --level 0
compare/repeats  compare $abc --repeats 3
compare/epsilon  compare $abc --epsilon 0.1
compare/correction  compare $abc --correction none,holm
compare/against-file  compare labels $abc --against q.qrels
compare/against-folder  compare labels $abc --against demo
compare/against-two  compare labels a.parquet b.parquet --against half
compare/against-graph  compare labels $abc --against-graph half/graph
compare/by-graph  compare parts $abc --by category
compare/by  compare parts $abc --by colour
compare/by-label  compare parts $abc --by label
compare/ratios-by  compare parts $abc --by side --ratios half.tsv
compare/depths-graph  compare depths $abc --pool pool.tsv
compare/depths-unpooled  compare depths $abc --pool pool.tsv $g
compare/depths-runs-graph  compare depths $runs --pool pool.tsv
compare/depths-two  compare depths --qrels q.qrels a.run b.run --pool pool.tsv $g
compare/reuse-ranks  compare reuse $abc --pool pool.tsv
compare/reuse-graph  compare reuse $runs --pool pool.tsv
compare/graph-runs  compare $runs $g
compare/stability-runs  compare stability $runs
compare/stability-two  compare stability a.parquet b.parquet
compare/num-ret  compare $runs -m num_ret
compare/runs-measure  compare $runs -m mapp
compare/runs-parameter  compare $runs -m P.x
compare/runs-kg  compare $runs -m kg_amr
compare/entities-ranks  compare $abc --n-entities 9
compare/no-qrels  compare a.run b.run
compare/ranks-as-runs  compare --qrels q.qrels $abc
compare/qrels-as-run  compare a.parquet q.qrels
compare/missing  compare a.parquet nowhere.parquet
compare/missing-qrels  compare --qrels nowhere.qrels a.run b.run
compare/reproduction-ranks  compare reproduction a.parquet b.parquet
compare/reproduction-three  compare reproduction $runs
compare/replicates-one  compare replicates a.parquet b.parquet
compare/replicates-runs  compare replicates $runs
compare/replicates-run  compare replicates $xy --run x-1.run
compare/run-alone  compare $abc --run a.run
compare/plot-pairs  compare stability $abc --plot-pairs out.svg
compare/plot-replicates  compare replicates $xy --plot out.svg
compare/plot-by  compare parts $abc --by side --plot out.svg
compare/plot-rankings-two  compare a.parquet b.parquet --plot-rankings out.svg
compare/plot-rankings-one  compare $abc --plot-rankings out.svg -m mrr
compare/plot-same  compare $abc --plot out.svg --plot-pairs out.svg
compare/plot-ending  compare $abc --plot out.doc
compare/plot-folder  compare $abc --plot nowhere/out.svg
compare/plot-input  compare $abc --plot a.parquet
compare/tables-alone  compare sparse.csv complete.csv
compare/tables-by  compare labels sparse.csv --against depths.csv --by depths -m micro_mrr
compare/tables-measure  compare labels sparse.csv --against complete.csv -m other
compare/tables-test  compare labels sparse.csv --against complete.csv --test t
changes/one  changes a.parquet
changes/same  changes a.parquet a.parquet --name A --name A
changes/other  changes a.parquet half/a.parquet
changes/runs  changes a.parquet b.parquet --run a.run
changes/best  changes a.parquet b.parquet --show best
changes/k  changes a.parquet b.parquet --k 0
changes/csv  changes a.parquet b.parquet --format csv
changes/largest  changes a.parquet b.parquet --largest 0
changes/names  changes a.parquet b.parquet --name A
stratify/metric  stratify a.parquet -m mmr
stratify/metric-kind  stratify a.parquet -m median_rank
stratify/at  stratify a.parquet --at 2
stratify/grid-at  stratify a.parquet --vary grid --at 0.5
stratify/points  stratify a.parquet --points 1
stratify/entities  stratify a.parquet --count-entities train
stratify/splits  stratify a.parquet $g --count-entities tset
stratify/graph  stratify a.parquet --graph half/graph
stratify/side  stratify a.parquet --side relation

openworld/nothing  openworld
openworld/one  openworld a.parquet
openworld/other  openworld a.parquet half/a.parquet
openworld/sparsity  openworld a.parquet b.parquet --sparsity 1.5
openworld/both  openworld a.parquet b.parquet --sparsity 0.5 --density 0.5
openworld/density  openworld a.parquet b.parquet --density 0
openworld/train-share  openworld a.parquet b.parquet --train-share 0.5
openworld/values  openworld --values 0.3 0.2
openworld/values-range  openworld --values 1.3 0.2 --n-questions 10 --n-answers 3
openworld/values-files  openworld a.parquet b.parquet --values 0.3 0.2
openworld/metric  openworld a.parquet b.parquet -m mr
openworld/level  openworld a.parquet b.parquet --level 2
openworld/figure-plot  openworld --figure expected
openworld/figure-answers  openworld --figure expected --n-answers 2.5 --plot out.svg
openworld/figure-metric  openworld --figure approximation -m hits@10 --plot out.svg
openworld/correlation  openworld --figure expected --correlation 0.1 --plot out.svg
openworld/study-files  openworld a.parquet b.parquet --study small
stats/missing  stats nowhere
stats/percentile  stats demo/graph --percentile 101
stats/format  stats kgx:demo/graph
stats/order  stats csv,hrx:demo/graph
stats/columns  stats openke,hrt:small/openke
stats/pickle  stats jobs.toml
stats/plot  stats demo/graph --plot out.doc
sample/share  sample demo/graph -o out.tsv --share 0
sample/both  sample demo/graph -o out.tsv --share 0.1 --size 3
sample/size  sample demo/graph -o out.tsv --size 5000
sample/split  sample demo/graph -o out.tsv --split tset
sample/overwrite  sample demo/graph -o demo/graph/test.txt
pool/none  pool $seeds -o out.tsv
pool/depth  pool $seeds a.run -o out.tsv --depth 0
pool/sample  pool $seeds a.run -o out.tsv --sample 1.5
pool/seed  pool $seeds a.run -o out.tsv --seed 3
pool/twice  pool $seeds a.run a.run -o out.tsv
pool/rows  pool $seeds a.run -o out.tsv --rows instances
pool/queries  pool $seeds trec/r.run -o out.tsv
pool/missing  pool $seeds nowhere.run -o out.tsv
pool/overwrite  pool $seeds a.run -o seeds.tsv
judge/none  judge
judge/unknown  judge serv
judge/annotators  judge sheets pool.tsv --annotators a,a -o new
judge/annotator  judge sheets pool.tsv --annotators a, -o new
judge/missing  judge sheets nowhere.tsv --annotators a -o new
judge/no-folder  judge sheets pool.tsv --annotators a -o pool.tsv
judge/overlap  judge sheets pool.tsv --annotators a --overlap 2 -o new
judge/again  judge sheets pool.tsv --annotators anna -o sheets
judge/done  judge sheets pool.tsv --annotators a --done nowhere.tsv -o new
judge/serve  judge serve nowhere.tsv
judge/serve-pool  judge serve pool.tsv
judge/serve-port  judge serve sheets/anna.tsv --port 99999
judge/serve-facts  judge serve sheets/anna.tsv --facts 3
judge/export  judge export sheets/anna.tsv -o sheets/anna.tsv
judge/agreement  judge agreement judged/anna.tsv
judge/agreement-none  judge agreement sheets/anna.tsv sheets/ben.tsv
judge/merge  judge merge judged/anna.tsv -o judged/anna.tsv
judge/merge-folder  judge merge judged/anna.tsv -o nowhere/out.tsv
judge/audit  judge audit settled.tsv -n 9999 -o out.tsv
judge/audit-blank  judge audit sheets/anna.tsv -o out.tsv
judge/templates  judge templates pool.tsv -o pool.tsv
judge/check  judge check
complete/depth  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels o --depth 99
complete/sample  complete $seeds --pool pool.tsv --judgements settled.tsv --write-sample-qrels o
complete/blank  complete $seeds --pool pool.tsv --judgements sheets/anna.tsv --write-qrels o
complete/measures  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels o -m map
complete/measure  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels o
    -m mapp a.run
complete/top  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels o --top 0 a.run
complete/run-dir  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels o
    --write-runs f
complete/overwrite  complete $seeds --pool pool.tsv --judgements settled.tsv
    --write-qrels settled.tsv
convert/nothing  convert $g
convert/overwrite  convert $g --write-qrels q --write-questions q
convert/graph  convert $g --write-qrels demo/graph/test.txt
convert/split  convert $g --write-qrels q --split tset
eval/one  eval trec/qrels.txt
eval/missing  eval trec/qrels.txt nowhere.run
eval/measure  eval -m mapp trec/qrels.txt trec/r.run
eval/parameter  eval -m P.x trec/qrels.txt trec/r.run
eval/parameter-none  eval -m map.3 trec/qrels.txt trec/r.run
eval/level  eval -l x trec/qrels.txt trec/r.run
eval/depth  eval -M 1.5 trec/qrels.txt trec/r.run
eval/format-r  eval -R other trec/qrels.txt trec/r.run
eval/format-t  eval -T other trec/qrels.txt trec/r.run
eval/format  eval --format xml trec/qrels.txt trec/r.run
eval/prefs  eval -m prefs_simp trec/qrels.txt trec/r.run
eval/qrels-measure  eval -R prefs -m map trec/prefs.txt trec/r.run
eval/ties  eval --ties expected -m bpref trec/qrels.txt trec/r.run
eval/ties-kind  eval --ties mean trec/qrels.txt trec/r.run
eval/ci  eval --ci 100 trec/qrels.txt trec/r.run
eval/ci-alone  eval --resamples 9 trec/qrels.txt trec/r.run
eval/kg-entities  eval -m kg_amr q.qrels a.run
eval/kg-few  eval -m kg_mrr --n-entities 3 q.qrels a.run
eval/graph-queries  eval -m kg_mrr $g trec/qrels.txt trec/r.run
eval/split-alone  eval --split valid trec/qrels.txt trec/r.run
eval/debug  eval -D 1.99 trec/qrels.txt trec/r.run
eval/zscores  eval -Z nowhere trec/qrels.txt trec/r.run
eval/help-measure  eval -h -m mapp
eval/compat  eval --compat 8 trec/qrels.txt trec/r.run
eval/stdin-twice  eval - -
eval/option  eval --nonsense trec/qrels.txt trec/r.run
"""

CALLS = """
graph/from-arrays/shape  kgtrec.Graph.from_arrays(test=np.zeros((3, 2), int))
graph/from-arrays/floats  kgtrec.Graph.from_arrays(test=np.zeros((3, 3)))
graph/from-arrays/negative  kgtrec.Graph.from_arrays(test=np.full((3, 3), -1))
graph/from-arrays/range  kgtrec.Graph.from_arrays(test=[[0, 0, 9]], n_entities=3)
graph/from-arrays/labels  kgtrec.Graph.from_arrays(test=[[0, 0, 9]], entities=["a", "b"])
graph/from-arrays/labels-twice  kgtrec.Graph.from_arrays(test=[[0, 0, 1]], entities=["a", "a"])
graph/from-arrays/nothing  kgtrec.Graph.from_arrays()
graph/from-arrays/times  kgtrec.Graph.from_arrays(test=[[0, 0, 1, 5]], times=["a"])
graph/split  graph.split("tset")
graph/read-format  kgtrec.read_graph("demo/graph", format="other")
graph/read-columns  kgtrec.read_graph("demo/graph", columns="htr")
questions/split  graph.questions("tset")
questions/sides  graph.questions(sides="left")
questions/filter  graph.questions(filter="some")
questions/context  graph.questions(context="time")
questions/entities  graph.questions(entities=["France"])
questions/entity-range  graph.questions(entities=[9999])
questions/columns  graph.questions(columns=list(graph.entities)[:-1])
questions/columns-twice  graph.questions(columns=[graph.entities[0]] * 893)
questions/restrict-length  questions.restrict(candidates=[[1]])
questions/restrict-range  questions.restrict(candidates=[[9999]] * 466)
questions/restrict-outside  questions.restrict(candidates=[[1]] * 466, outside="best")
questions/restrict-answers  questions.restrict(candidates=[[1]] * 466)
rank/rows  kgtrec.rank(scores[:3], questions)
rank/columns  kgtrec.rank(scores[:, :3], questions)
rank/dimension  kgtrec.rank(scores[0], questions)
rank/integers  kgtrec.rank((scores * 10).astype("i4"), questions)
rank/nan  kgtrec.rank(holes, questions)
rank/nan-kind  kgtrec.rank(scores, questions, nan="best")
rank/rows-kind  kgtrec.rank(scores, questions, rows="lines")
rank/depth  kgtrec.rank(scores, questions, run_depth=-1)
rank/depth-float  kgtrec.rank(scores, questions, run_depth=1.5)
rank/threads  kgtrec.rank(scores, questions, threads=0)
rank/atol  kgtrec.rank(scores, questions, atol=-1)
rank/atol-word  kgtrec.rank(scores, questions, atol="x")
rank/questions  kgtrec.rank(scores, graph)
rank/source  kgtrec.rank(3, questions)
rank/file  kgtrec.rank("nowhere.npy", questions)
rank/higher  kgtrec.rank(scores, questions, higher_is_better="no")
ranker/duplicates  kgtrec.Ranker(questions, duplicates="keep")
ranker/twice  [ranker.update([0, 0], scores[:2]) for ranker in [kgtrec.Ranker(questions)]]
ranker/again  [(ranker.update([0], scores[:1]), ranker.update([0], scores[:1])) for ranker in
    [kgtrec.Ranker(questions)]]
ranker/range  kgtrec.Ranker(questions).update([9999], scores[:1])
ranker/shape  kgtrec.Ranker(questions).update([0, 1], scores[:1])
ranker/dtype  [(ranker.update([0], scores[:1]), ranker.update([1], scores[1:2].astype("f8"))) for
    ranker in [kgtrec.Ranker(questions)]]
ranker/finish  kgtrec.Ranker(questions).finish()
ranker/finished  [(ranker.update(range(466), scores), ranker.finish(), ranker.update([0],
    scores[:1])) for ranker in [kgtrec.Ranker(questions)]]
ranker/merge  kgtrec.Ranker(questions).merge(kgtrec.Ranker(small.questions()))
ranker/merge-options  kgtrec.Ranker(questions, run_depth=3).merge(kgtrec.Ranker(questions))
ranker/save  kgtrec.Ranker(questions).save("nowhere/x")
ranker/batches  list(kgtrec.Ranker(questions).batches(0))
ranker/foreign-batch
    kgtrec.Ranker(questions).update(next(iter(kgtrec.Ranker(questions).batches(5))), scores[:5])
factors/metric  kgtrec.Factors(**dot, metric="angle")
factors/width  kgtrec.Factors(dot["queries"][:, :3], dot["entities"])
factors/dimension  kgtrec.Factors(dot["queries"][0], dot["entities"])
factors/bias  kgtrec.Factors(**dot, bias=[1.0])
factors/dtype  kgtrec.Factors(dot["queries"].astype(int), dot["entities"].astype(int))
factors/rows  kgtrec.rank(kgtrec.Factors(dot["queries"][:3], dot["entities"]), questions)
factors/infinite  kgtrec.rank(kgtrec.Factors(dot["queries"] * np.inf, dot["entities"]), questions)
ranges/restricted  kgtrec.AnswerScores(questions.restrict(candidates=drawn, outside="worst"))
ranges/unfilled  kgtrec.rank_range(scores[:, :100], kgtrec.AnswerScores(questions))
ranges/beyond  kgtrec.AnswerScores(questions).fill(scores, 5)
ranges/merge-none  kgtrec.merge_ranges([], kgtrec.AnswerScores(questions))
ranges/merge-gap  [(answers.fill(scores), kgtrec.merge_ranges([kgtrec.rank_range(scores[:, :100],
    answers)], answers)) for answers in [kgtrec.AnswerScores(questions)]]
ranks/load  kgtrec.Ranks.load("a.run")
ranks/kind  ranks.rank("best")
ranks/expected  ranks.rank("expected")
ranks/missing  kgtrec.Ranks({"greater": [1]})
ranks/concat  kgtrec.Ranks.concat([])
ranks/concat-other  kgtrec.Ranks.concat([ranks, load("timed").ranks])
ranks/save  ranks.save("nowhere/x.parquet")
lists/format  kgtrec.rank_lists("lists.jsonl", small.questions(), "other")
lists/unlinkable  kgtrec.rank_lists("lists.jsonl", small.questions(), "jsonl", unlinkable="skip")
lists/no-format  kgtrec.rank_lists("lists.jsonl", small.questions())
lists/missing  kgtrec.rank_lists("nowhere", small.questions(), "jsonl")
result/key  result["mmr"]
result/key-side  result["relation.mrr"]
result/key-type  result[3]
result/sampled  result["sampled.both.realistic.micro.mrr"]
result/slice  result.slice("colour")
result/slice-graph  result.slice("category")
result/per-question  result.per_question("mapp")
evaluate/measure  kgtrec.evaluate(scores, questions, ["mmr"])
evaluate/depth  kgtrec.evaluate(scores, questions, run_depth=-1)
evaluate/scores  kgtrec.evaluate("nowhere.npy", questions)
evaluate/questions  kgtrec.evaluate(scores)
measures/parse  measures.Measure.parse("both.realistic.micro.hits")
measures/side  measures.Measure("left", "realistic", "micro", "mrr")
measures/random  measures.random_scorer("amri", [3])
measures/random-candidates  measures.random_scorer("mrr", [0])
measures/random-weights  measures.random_scorer("mrr", [3], [-1])
measures/grid  measures.stratified_grid(ranks, [2.0], [0.0], ["mrr"])
trec/qrels  trec.read_qrels("a.npy")
trec/run  trec.read_run("nowhere.run")
trec/evaluate  trec.evaluate({"q": {"d": 1}}, {"q": {"d": "x"}}, ["map"])
trec/evaluate-queries  trec.evaluate({"q": {"d": 1}}, {"p": {"d": 1.0}}, ["map"])
trec/evaluate-measure  trec.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, ["mapp"])
trec/evaluate-level  trec.evaluate({"q": {"d": 1.5}}, {"q": {"d": 1.0}}, ["map"])
trec/native  trec.native_values(ranks, ["relstring"])
trec/write-run  run.write("nowhere/x.run")
trec/write-tag  run.write("x.run", tag="a b")
trec/write-qrels  kgtrec.write_qrels({"q": {"d e": 1}}, "x.qrels")
run/cut  run.cut(-1)
cluster/source  cluster.rank("nowhere.npy", questions)
cluster/store  cluster.store_questions(questions, "a.npy/deep")
align/pairs  study.align([[0, 0], [0, 0]], left, right)
align/range  study.align([[0, 999]], left, right)
align/nothing  study.align(pairs)
align/similarity  study.align(pairs, left, right, similarity="angle")
align/csls  study.align(pairs, left, right, csls=-1)
align/width  study.align(pairs, left[:, :3], right)
align/sides  study.align(pairs, left, right, sides="relation")
align/labels  study.align(pairs, left, right, left_labels=["a"])
align/sizes  study.size_experiment(pairs, left, right, sizes=[9999])
classify/criterion  study.classify(*labelled, criterion="kappa")
classify/bins  study.classify(*labelled, bins=1)
classify/confidence  study.classify(*labelled, resampling=study.Resampling(100))
classify/lengths  kgtrec.LabelledTriples(np.zeros((2, 3), int), np.array([True]), np.array([1.0]))
classify/nan  kgtrec.LabelledTriples(np.zeros((1, 3), int), np.array([True]), np.array([np.nan]))
sampling/size  study.draw_candidates(questions, 0)
sampling/by  study.draw_candidates(questions, 30, by="luck")
sampling/weights  study.draw_candidates(questions, 30, by=np.ones((2, 2)))
sampling/full  study.estimate_full(scores, questions, 30, full=-1)
sampling/level  study.estimate_full(scores, questions, 30, level=1.0)
sampling/bounds  study.full_bounds(ranks)
sampling/rank-bounds  study.rank_bounds(load("sampled").ranks, 2)
seeds/share  study.sample_seeds(graph, 2)
seeds/both  study.sample_seeds(graph, 0.1, size=3)
seeds/none  study.sample_seeds(graph, size=0)
seeds/questions  study.seed_questions(graph, [[0, 0, 0]])
pool/none  study.make_pool([], study.seed_questions(graph, graph.splits["test"][:3]))
pool/places  study.run_lists(run, study.seed_questions(graph, graph.splits["test"][:3]), "a",
    places="all")
pool/read  study.read_pool("seeds.tsv", graph)
pool/judgements  study.read_judgements("nowhere.tsv", graph)
pool/judgements-blank  study.read_judgements("settled.tsv", graph, "Y")
semantics/types  study.fitting_by_types(graph, "types.tsv", "types.tsv")
semantics/splits  study.fitting_observed(graph, "tset")
semantics/cutoffs  study.semantic_shares({"a": "a.run"}, questions, cutoffs=[0])
semantics/runs  study.semantic_shares({}, questions)
changes/one  study.answer_changes({"a": ranks})
changes/other  study.answer_changes({"a": ranks, "b": load("timed").ranks})
stratified/vary  study.beta_curve(ranks, vary="beta_x")
stratified/side  study.beta_curve(ranks, side="relation")
stratified/metric  study.beta_curve(ranks, metrics=["amri"])
stratified/points  study.beta_curve(ranks, points=["x"])
shift/counts  study.reweighted(result, "mrr", {"no such relation": 3})
shift/measure  study.reweighted(result, "macro.mrr", study.read_relation_counts("half.tsv"))
shift/zero  study.relation_ratios([0, 0])
shift/divergence  study.kl_divergence([1], [1, 2])
popularity/split  study.entity_popularity(graph, "tset")
popularity/mix  study.triple_mix(graph, 101)
categories/threshold  study.relation_categories(graph, threshold=0)
leaks/split  study.find_leaks(graph, "tset")
leaks/enough  study.find_leaks(graph, enough=2)
compare/test  study.compare(study.samples_of_ranks({"a": ranks, "b": tied.ranks}, ["mrr"])[0], "f")
compare/correction  study.compare(study.samples_of_ranks({"a": ranks, "b": tied.ranks}, ["mrr"])[0],
    "t", "fdr")
compare/draws  study.compare(study.samples_of_ranks({"a": ranks, "b": tied.ranks}, ["mrr"])[0], "t",
    resampling=study.Resampling(resamples=1))
compare/samples-one  study.samples_of_ranks({}, ["mrr"])
compare/samples-measure  study.samples_of_ranks({"a": ranks}, ["amri"])
compare/samples-other  study.samples_of_ranks({"a": ranks, "b": load("timed").ranks}, ["mrr"])
compare/runs  study.samples_of_runs("q.qrels", {"a": "a.run"}, ["mapp"])
compare/replicates  study.compare_replicates({"x": [], "y": [ranks]}, ["mrr"])
compare/multiplicity  study.multiplicity({"a": ranks, "b": tied.ranks}, -1)
compare/tau  study.tau_b([1, 2], [1, 2, 3])
compare/overlap  study.rank_biased_overlap("ab", "ba", 2)
compare/values  study.values_of_table(study.read_value_table("complete.csv"), ["other"])
compare/rankings  study.rankings_of_values({"x": [1, 2]}, ["a", "b", "c"])
compare/sensitivity  study.data_sensitivity({"a": ranks, "b": tied.ranks})
compare/depths  study.depth_curves({"x": [[1, 2]]}, [1, 5])
openworld/density  study.random_removal(graph.splits["train"], 2.0)
openworld/tree  study.family_tree(0)
plots/metric  plots.relations({"a": result}, "mmr")
plots/none  plots.rank_distribution({})
plots/times  plots.over_time({"a": result})
plots/save  plots.save(plots.rank_distribution({"a": ranks}), "x.doc")
plots/heat-map  plots.beta_heat_map(study.beta_curve(ranks, metrics=["mrr"]))
"""
