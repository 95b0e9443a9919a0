"""Commands and values that `baseline.py` runs, by name. Rename options here too.

A line of a table is ``name  command line``; indented lines continue it. ``<x|y>`` gives one record
per choice; ``$word`` is one of `SHORT`. Never change names, even if commands change.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import kgtrec
from kgtrec import cluster, measures, plots, study, trec

# Texts that change from run to run, and their replacements.
UNSTEADY = (
    (r"/tmp/baseline-[\w-]+", "."),
    (r"\b\d+(\.\d+)? (s|ms|min)\b", "<time>"),
    (r"[\d.e+]+ scores a second", "<speed>"),
    (r"%%CreationDate.*", "%%CreationDate"),
)

ANY_ORDER = ("batch/run",)
"""Commands that tell what their workers do as it comes."""

SHORT = {
    "g": "--graph demo/graph",
    "few": "--permutations 1000 --resamples 200",
    "draws": "--resamples 200",
    "abc": "a.parquet b.parquet c.parquet",
    "whole": "whole/a.parquet whole/b.parquet whole/c.parquet",
    "judged": "--qrels complete.qrels a.run b.run c.run",
    "runs": "--qrels q.qrels a.run b.run c.run",
    "xy": "x-1.parquet x-2.parquet x-3.parquet y-1.parquet y-2.parquet y-3.parquet",
    "rank": "rank $g --scores a.npy -o out.parquet",
    "listed": "rank --graph small/tsv -o out.parquet --predictions {file}",
    "bare": "classify --valid-triples classify/valid.tsv --test-triples classify/test-bare.tsv",
    "aligned": "align --right align/right.npy -o out.parquet",
    "seeds": "--graph demo/graph --seed-triples seeds.tsv",
    "all": "--format <table|csv|tsv|markdown|latex|json>",
}

DEMO = """
demo/run  demo --output demo
"""

# Files that later lines read.
INPUTS = """
rank/a  rank $g --scores a.npy -o a.parquet --write-run a.run --write-qrels q.qrels --run-depth 30
    --tag a
rank/b  rank $g --scores b.npy -o b.parquet --write-run b.run --run-depth 30
rank/c  rank $g --scores c.npy -o c.parquet --write-run c.run --run-depth 30
rank/half/a  rank --graph half/graph --scores half/a.npy -o half/a.parquet --write-run half/a.run
    --write-qrels half/q.qrels --run-depth 30
rank/half/b  rank --graph half/graph --scores half/b.npy -o half/b.parquet
rank/half/c  rank --graph half/graph --scores half/c.npy -o half/c.parquet
rank/x-1  rank $g --scores x-1.npy -o x-1.parquet --write-run x-1.run --run-depth 5 -q
rank/x-2  rank $g --scores x-2.npy -o x-2.parquet --write-run x-2.run --run-depth 5 -q
rank/x-3  rank $g --scores x-3.npy -o x-3.parquet --write-run x-3.run --run-depth 5 -q
rank/y-1  rank $g --scores y-1.npy -o y-1.parquet --write-run y-1.run --run-depth 5 -q
rank/y-2  rank $g --scores y-2.npy -o y-2.parquet --write-run y-2.run --run-depth 5 -q
rank/y-3  rank $g --scores y-3.npy -o y-3.parquet --write-run y-3.run --run-depth 5 -q
rank/raw  rank $g --scores a.npy -o raw.parquet --filter raw
rank/sampled  rank $g --scores a.npy -o sampled.parquet --candidates candidates.tsv
rank/timed  rank --graph timed:timed --context time --scores timed.npy -o timed.parquet
rank/statements  rank --graph statements:statements --context qualifiers --scores statements.npy
    -o statements.parquet
rank/qualifier  rank --graph statements:statements --context qualifiers --sides qualifier
    --scores qualifier.npy -o qualifier.parquet
rank/relation  rank $g --sides relation --scores relation-scores.npy -o relation.parquet
rank/predictions/jsonl  rank --graph small/tsv --predictions lists.jsonl --predictions-format jsonl
    -o lists.parquet --write-run lists.jsonl.run --write-qrels lists.qrels
rank/openke  rank --graph small/openke --scores small/openke.npy -o openke.parquet
    --write-run openke.run
sample/seeds  sample demo/graph -o seeds.tsv --share 0.15
pool/runs  pool $seeds a.run b.run c.run --depth 6 --by-category --relation-types roles.tsv
    -o pool.tsv
pool/sample  pool $seeds a.run b.run c.run --depth 6 --sample 0.3 --seed 1 -o sampled.tsv
shard/1  rank $g --scores a.npy --shard 1/3 -o shards --run-depth 30 --threads 1
shard/2  rank $g --scores a.npy --shard 2/3 -o shards --run-depth 30 --threads 1
shard/3  rank $g --scores a.npy --shard 3/3 -o shards --run-depth 30 --threads 1
shard/merge  merge shards -o out.parquet --write-run out.run --write-qrels out.qrels
judge/sheets  judge sheets pool.tsv --annotators anna,ben --names names.tsv -o sheets
"""

# After the sheets are filled, and after the conflicts are filled.
MERGED = """
judge/merge  judge merge judged/anna.tsv judged/ben.tsv --conflicts carla.tsv -o judged.tsv
"""
SETTLED = """
judge/adjudicated  judge merge judged/anna.tsv judged/ben.tsv --adjudicated judged/carla.tsv
    -o settled.tsv
complete/split  complete $seeds --pool pool.tsv --judgements settled.tsv
    --write-qrels complete.qrels
    --write-split complete.tsv
"""
WHOLE = """
rank/whole/a  rank --graph whole/graph --scores whole/a.npy -o whole/a.parquet
rank/whole/b  rank --graph whole/graph --scores whole/b.npy -o whole/b.parquet
rank/whole/c  rank --graph whole/graph --scores whole/c.npy -o whole/c.parquet
"""

# A line reads files of the lines above, and of others of its group.
COMMANDS = """
demo/other-seed  demo --output demo-7 --seed 7

# ---- rank ----
rank/shards-folder  rank $g --scores a.shards -o out.parquet
rank/factors  rank $g --scores <dot|l1|l2|bias>.npz -o out.parquet --write-run out.run
    --run-depth 10
rank/filters  rank $g --scores b.npy -o 'out-{filter}.parquet' --write-run 'out-{filter}.run'
    --run-depth 5 --filter raw --filter valid --filter test --filter train,test
rank/filter-none  rank $g --scores a.npy -o out.parquet --filter none
rank/sides/head  rank $g --sides head --scores head.npy -o out.parquet
rank/sides/tail  rank $g --sides tail --scores tail.npy -o out.parquet
rank/known  rank $g --scores a.npy -o out.parquet --known known.tsv
rank/entities  rank $g --scores a.npy -o out.parquet --entities entities.txt
rank/relations  rank $g --scores a.npy -o out.parquet --relations relations.txt
rank/unknown  rank $g --scores a.npy -o out.parquet --relations unknown.txt
    --unknown skip
rank/type-constraints  rank --graph small/openke --scores small/openke.npy -o out.parquet
    --type-constraints small/openke/type_constrain.txt --outside worst
rank/negatives  rank $g --scores negatives.npy --candidates negatives.npz --score-columns candidates
    -o out.parquet
rank/instances  rank $g --scores instances.npy --rows instances --lower-is-better -o out.parquet
    --write-run out.run --run-depth 3
rank/nan  rank $g --scores nan.npy --nan worst -o out.parquet --write-run out.run --run-depth 40
rank/tolerance  rank $g --scores a.npy --atol 0.1 --rtol 0.05 -o out.parquet --threads 1
rank/valid  rank $g --scores valid.npy --split valid --filter valid -o out.parquet
rank/timed/static  rank --graph timed:timed --context time --filter static --scores timed.npy
    -o out.parquet
rank/timed/raw  rank --graph timed:timed --context time --filter raw --scores timed.npy
    -o out.parquet
rank/statements/static  rank --graph statements:statements --context qualifiers --filter static
    --scores statements.npy -o out.parquet --write-run out.run --write-qrels out.qrels
rank/predictions/anyburl  rank --graph small/tsv --predictions lists.anyburl
    --predictions-format anyburl
    -o out.parquet --unlinkable <place|drop>
rank/predictions/pykeen  rank --graph small/tsv --predictions lists.csv
    --predictions-format pykeen --sides tail
    -o out.parquet
rank/predictions/ogb-lsc  rank --graph small/tsv --predictions lists.npz
    --predictions-format ogb-lsc
    -o out.parquet
rank/predictions/trec  rank --graph small/tsv --predictions lists.run --predictions-format trec
    -o out.parquet
rank/quiet  --quiet rank $g --scores a.npy -o out.parquet --filter raw

# ---- shards ----
shard/by-entities/1  rank $g --scores b.npy --shard 1/2 -o shards-e --shard-by entities
shard/by-entities/2  rank $g --scores b.npy --shard 2/2 -o shards-e --shard-by entities
shard/by-entities/merge  merge shards-e -o out.parquet --write-run out.run --run-depth 5 --tag t -q
shard/factors/1  rank $g --scores dot.npz --shard 1/2 -o shards-f --shard-by questions
    --filter valid
shard/factors/2  rank $g --scores dot.npz --shard 2/2 -o shards-f --shard-by questions
    --filter valid
shard/factors/merge  merge shards-f -o out.parquet

# ---- batch ----
batch/run  batch jobs.toml --workers 1
batch/status  batch jobs.toml --status
batch/report  report batch --format <latex|markdown|csv|html|typst>
batch/report/tested  report batch --format latex --columns mrr,hits@10 --test t

# ---- align ----
align/table  align $embeddings -o out.parquet --write-run out.run --write-qrels out.qrels
    --format <table|csv|json>
align/table/print  align $embeddings -o out.parquet --format <markdown|latex>
align/similarity  align $embeddings --similarity <cosine|dot|l2|l1> -o out.parquet --format json
align/csls  align $embeddings --csls 10 -o out.parquet --format json
align/sides  align $embeddings --sides <head|tail> -o out.parquet --format csv
align/matrix  align --matrix align/matrix.npy --pairs align/pairs.tsv -o out.parquet --format json
align/labels  align --left align/left.npy --right align/right.npy --pairs align/named.tsv
    --left-labels align/l.txt --right-labels align/r.txt -o out.parquet --write-run out.run
align/sizes  align $embeddings --sizes 20,50,all --repeats 2 --plot out.svg
    --format <table|csv|json>

# ---- classify ----
classify/show  classify $classified --resamples 200 --format <table|csv|tsv|markdown|latex|json>
    --show <overall|relations|intervals|calibration|curves>
classify/one-threshold  classify $classified --one-threshold --criterion f1 --resamples 100
    --format json --plot out.svg
classify/scores-apart  classify --valid-triples classify/valid-bare.tsv
    --valid-scores classify/valid.npy
    --test-triples classify/test-bare.tsv --test-scores classify/test.npy --bins 5 --resamples 100
    --lower-is-better --format json
classify/negatives  classify --valid-triples classify/valid-true.tsv
    --valid-negatives classify/valid-false.tsv --valid-scores classify/valid-ordered.txt
    --test-triples classify/test-true.tsv --test-negatives classify/test-false.tsv
    --test-scores classify/test-ordered.txt --ci 90 --resamples 100 --seed 3 --format json

# ---- semantics ----
semantics/formats  semantics $g a.run b.run --resamples 200 $all
semantics/k  semantics $g a.run --k 1,5,20 --observed train,valid --ci 90 --resamples 100
    --format json
semantics/types  semantics $g a.run --entity-types types.tsv --relation-types roles.tsv
    --resamples 100 --format json
semantics/constraints  semantics --graph small/openke openke.run --resamples 100
    --type-constraints small/openke/type_constrain.txt --format json
semantics/questions  semantics $g a.run --questions demo/questions.tsv --resamples 100 --format csv

# ---- estimate ----
estimate/formats  estimate $g --scores a.npy --size 60 --full 80 $all
estimate/by  estimate $g --scores a.npy --size 60 --full 0.1 --format json
    --draw-by <uniform|frequency|observed|weights.npy>
estimate/bounds  estimate $g --scores a.npy --size 60 --full 0 --format json
estimate/candidates  estimate $g --size 30 --seed 4 --write-candidates drawn.npy
estimate/constraints  estimate --graph small/openke --scores small/openke.npy --size 10 --full 3
    --type-constraints small/openke/type_constrain.txt --format json

# ---- report ----
report/one  report a.parquet --format <table|json|csv|latex|markdown|html|typst>
report/three  report $abc --format <table|json|csv|latex|markdown|html|typst>
report/columns  report $abc --columns mrr,hits@10,macro.mrr,map --side head,tail,both --digits 2
    --format <table|csv|latex|markdown|html|typst>
report/test  report $abc --test <randomisation|t|wilcoxon|bootstrap> --format markdown
report/correction  report $abc --test t --correction <holm|bh|bonferroni|none> --level 0.1
    --format latex
report/names  report a.parquet b.parquet --name First --name Second --format csv -o out.csv
report/replicates  report $xy --replicates --format <latex|csv|markdown>
report/replicates/test  report $xy --replicates --test bootstrap --format markdown
report/html  report $abc --html out.html $g --run a.run --run b.run --run c.run
report/html/one  report a.parquet --html out.html
report/measures  report a.parquet -m mrr -m head.macro.hits@3 -m amri -m map_cut_20 -m log_mrr
    --format <table|json|csv>
report/by  report a.parquet --format csv --by <side|relation>
report/by/graph  report a.parquet $g --format csv --by
    <category|quartile|given-quartile|relation-quartile|category,side>
report/by/label  report a.parquet --by label --labels labels.tsv
    --format <table|json|csv|latex|markdown>
report/by/relation  report a.parquet b.parquet --by relation --format <table|json|latex|markdown>
report/by/time  report timed.parquet --by time --format csv
report/spread  report a.parquet --by relation --spread -m mrr -m hits@10
    --format <table|json|csv|latex|markdown>
report/ratios  report a.parquet --ratios half.tsv --format <table|json|csv|latex|markdown>
report/rank-types  report a.parquet b.parquet --rank-types -m mrr -m agmri
    --format <table|json|csv|latex|markdown>
report/kinds  report <raw|sampled|timed|statements|qualifier|relation|lists>.parquet --format json
report/kinds/text  report <raw|sampled|timed|statements|qualifier|relation|lists>.parquet
report/not-comparable  report a.parquet raw.parquet sampled.parquet half/a.parquet --format csv

# ---- plot ----
plot/ranks  plot ranks $abc -o out.<svg|pdf|png|eps>
plot/kinds  plot <ranks|ties|rank-types|relations|beta> a.parquet raw.parquet sampled.parquet
    -o out.svg
plot/metric  plot <rank-types|relations|beta-grid> -m hits@10 a.parquet -o out.svg
plot/times  plot times timed.parquet --name T -o out.svg
plot/beta-metrics  plot beta -m mrr -m mr a.parquet b.parquet --side tail
    --style size=9,width=5,family=serif,text=outlines -o out.svg

# ---- compare ----
compare/systems  compare $abc $few -m mrr -m tail.macro.hits@3 -m map_cut_20 --format
    <table|markdown|latex|csv|tsv|json>
compare/default  compare $abc $few
compare/tests  compare $abc $few_not_t --test <t|wilcoxon|bootstrap> --format json
compare/corrections  compare $abc $few --correction <holm|bh|bonferroni|none> --format csv
compare/cluster  compare $abc $few --cluster --ci 90 --level 0.01 --seed 3 --format json
compare/runs  compare $runs $few -m map -m P.5 -m bpref -m kg_mrr --n-entities 893 --format
    <table|markdown|latex|csv|tsv|json>
compare/runs/default  compare $runs $few
compare/plots  compare $abc $few --plot out.svg --plot-pairs pairs.svg --plot-rankings ranked.svg
compare/plots/stability  compare stability $abc --repeats 3 --plot out.svg
compare/plots/discriminative  compare power $abc -m mrr -m map_cut_20 --plot out.svg
compare/plots/labels  compare labels $abc --against half $draws --plot out.svg
compare/plots/labels/runs  compare labels $runs --against half/q.qrels $draws -m map --plot out.svg
compare/plots/published  compare labels sparse.csv --against complete.csv -m micro_mrr --plot
    out.svg
compare/plots/reuse  compare reuse $judged --pool pool.tsv $g --plot out.svg -m map_cut_20 -m bpref
compare/plots/depths/runs  compare depths $judged --pool pool.tsv $g $draws --plot out.svg
compare/plots/depths/ranks  compare depths $whole --pool pool.tsv --graph whole/graph $draws -m mrr
    --plot out.svg
compare/stability  compare stability $abc --repeats 3 --format <table|markdown|latex|csv|tsv|json>
compare/discriminative  compare power $abc -m mrr -m map_cut_20 --format
    <table|markdown|latex|csv|tsv|json>
compare/discriminative/tests  compare power $abc --cluster --test <wilcoxon|bootstrap> -m mrr
    --format json
compare/labels  compare labels $abc --against half $draws --format
    <table|markdown|latex|csv|tsv|json>
compare/labels/runs  compare labels $runs --against half/q.qrels $draws -m map --format <table|json>
compare/labels/parts  compare labels $abc --against half --by side -m mrr $draws --format
    <table|markdown|latex|csv|tsv|json>
compare/labels/ratios  compare labels $abc --against half --ratios half.tsv -m mrr --format
    <table|json|csv>
compare/published  compare labels sparse.csv --against complete.csv -m micro_mrr -m macro_mrr
    --format <table|markdown|latex|csv|tsv|json>
compare/published/depths  compare labels sparse.csv --against depths.csv --by depth -m micro_mrr -m
    macro_mrr --format <table|markdown|latex|csv|tsv|json>
compare/parts  compare parts $abc --by category,side $g -m mrr --format
    <table|markdown|latex|csv|tsv|json>
compare/parts/keys  compare parts $abc $g -m mrr --format json --by <quartile|given-quartile>
compare/parts/plain  compare parts $abc -m mrr --format json --by <relation|side>
compare/ratios  compare parts $abc --ratios half.tsv -m mrr -m hits@10 --format
    <table|markdown|latex|csv|tsv|json>
compare/reuse  compare reuse $judged --pool pool.tsv $g -m map_cut_20 -m bpref --format
    <table|markdown|latex|csv|tsv|json>
compare/depths/runs  compare depths $judged --pool pool.tsv $g $draws --format
    <table|markdown|latex|csv|tsv|json>
compare/depths/ranks  compare depths $whole --pool pool.tsv --graph whole/graph $draws -m mrr -m
    macro.mrr --format <table|csv|json>
compare/reproduction  compare reproduction --qrels q.qrels a.run b.run --format
    <table|markdown|latex|csv|tsv|json>
compare/reproduction/effects  compare reproduction --qrels q.qrels a.run b.run c.run x-1.run -m map
    --format json
compare/replicates  compare replicates $xy $draws -m mrr --format
    <table|markdown|latex|csv|tsv|json>
compare/replicates/multiplicity  compare replicates $xy --epsilon 0.05 $draws -m mrr --run x-1.run
    --run x-2.run --run x-3.run --run y-1.run --run y-2.run --run y-3.run --format <table|json|csv>

# ---- changes, stratify ----
changes/all  changes a.parquet b.parquet --run a.run --run b.run --name A --name B
    --format <table|json>
changes/show  changes a.parquet b.parquet --run a.run --run b.run --name A --name B $all
    --show <hits|best|changed|gained|lost>
changes/k  changes a.parquet c.parquet --k 1,50 --largest 3 --format json
stratify/vary  stratify a.parquet b.parquet --points 3 --vary <beta_e|beta_r|grid>
    --format <table|csv|json|markdown|latex>
stratify/tsv  stratify a.parquet b.parquet --points 3 --format tsv
stratify/graph  stratify a.parquet $g --count-entities train --count-relations all --points 3
    --format json
stratify/ranks  stratify b.parquet --points 3 --at 0.5 -m mr --side tail --format csv
    --ranks <optimistic|realistic|pessimistic|expected|ordinal>

# ---- openworld ----
openworld/files  openworld a.parquet b.parquet --plot out.svg --format <table|json|csv>
openworld/print  openworld a.parquet b.parquet --format <tsv|markdown|latex>
openworld/values/print  openworld --values 0.190 0.193 --n-questions 500 --n-answers 28
    --sparsity 0.35 --format <tsv|markdown|latex>
openworld/density  openworld a.parquet b.parquet --density 0.7 --train-share 0.8 -m hits@10
    --format json
openworld/values  openworld --values 0.190 0.193 --n-questions 500 --n-answers 28 --sparsity 0.35
    --format <table|json|csv>
openworld/figure  openworld --figure <expected|approximation> --plot out.svg --sparsity 0.1
    --format <table|json|csv>
openworld/metrics  openworld --figure expected -m <mrr|hits@10|p_mrr@0.5|log_mrr> --plot out.svg
openworld/simulated  openworld --figure simulated --n-questions 30 --n-entities 500 --n-answers 9
    --correlation 0 --correlation 0.1 --plot out.svg --format <table|json|csv>
openworld/study  openworld --study small --plot out.svg --format json

# ---- suite, audit ----
suite/rank/a  rank $g --scores a.npy -o many/countries/a.parquet
suite/rank/b  rank $g --scores b.npy -o many/countries/b.parquet
suite/rank/half/a  rank --graph half/graph --scores half/a.npy -o many/half/a.parquet
suite/rank/half/b  rank --graph half/graph --scores half/b.npy -o many/half/b.parquet
suite/folder  suite many $draws $all --show <models|cells|pairs>
suite/by/rank  rank --graph small/openke --scores small/openke.npy -o parts/openke/a.parquet
suite/by  suite parts $draws --by relation --graphs small -m mrr --format json
suite/published  suite many.csv $draws $all --show <models|missing|bounds>
suite/test  suite many.csv $draws --test wilcoxon --ci 90 --show pairs --format json
suite/plots  suite many.csv $draws --plot out.svg --plot-rankings out-r.svg --plot-cells out-c.svg
    --html out.html
audit/possible  audit printed.csv --n-instances 680 --n-entities 893 $all
audit/graph  audit printed.csv $g --percent --truncated --averaged-runs 3 --format json
audit/protocols  audit printed-a.csv a.parquet $all
audit/scores  audit printed-a.csv $g --scores a.npy --format json

# ---- stats, sample, formats, measures, guides ----
stats/formats  stats demo/graph --percentile 80 --plot out.svg --format <table|json>
stats/graphs  stats --format json <small/tsv|tsv,htr:small/htr|small/libkge|rotate:small/rotate
    |dgl-ke,rth:small/dglke|small/pykeen|small/openke|small/csv|small/ntriples|small/arrow
    |small/ogb|ilpc:small/ilpc|grail:small/grail/v1|ultra:small/ultra|timed:timed
    |statements:statements|wikipeople>
sample/by-relation  sample demo/graph -o out.tsv --share 0.1 --seed 7 --stratified
sample/size  sample demo/graph -o out.tsv --size 25 --split valid
formats/list  formats
measures/list  measures --format <table|json>
measures/explained  measures amri adjusted_inverse_harmonic_mean_rank
    both.realistic.question.p_mrr@0.5
    triple expected hits@10 head map_cut_20 --format <table|json>
guide/list  guide
guide/path  guide ties --path

# ---- pools and judgements ----
pool/formats  pool $seeds a.run b.run -o out.tsv --format <table|json>
pool/scores  pool $seeds a.npy a.shards dot.npz -o out.tsv --depth 4 --places <filtered|raw>
judge/templates  judge templates pool.tsv -o templates.tsv
judge/overlap  judge sheets pool.tsv --annotators a,b,c --overlap 0.3 --batch 50 --depth 3
    --templates templates.tsv --in-relation-order --by-rule --seed 2 -o sheets-2
judge/of-sample  judge sheets sampled.tsv --annotators a -o sheets-3
judge/export  judge export sheets/anna.tsv -o out.tsv
judge/agreement  judge agreement judged/anna.tsv judged/ben.tsv --by-relation
    --format <table|csv|json|markdown|latex>
judge/agreement/tsv  judge agreement judged/anna.tsv judged/ben.tsv --by-relation --format tsv
judge/agreement/blank  judge agreement judged/anna.tsv judged/ben.tsv --format json
    --blank <open|N|?>
judge/check  judge check judged/anna.tsv judged/ben.tsv
judge/audit  judge audit settled.tsv -n 20 -o audit.tsv --seed 1
complete/formats  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels out.qrels
    --write-split out.tsv --write-runs filtered --top 5 --top 10 a.run b.run --format <table|json>
complete/reverse  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels out.qrels
    --no-rules --depth 3 --reverse --blank N
complete/measures  complete $seeds --pool pool.tsv --judgements settled.tsv --write-qrels out.qrels
    -m map -m P.5 --within 10 a.run --format json
complete/sample  complete $seeds --pool sampled.tsv --judgements judged/sampled.tsv
    --write-sample-qrels sample.qrels --write-runs filtered a.run
complete/infap  eval -m infAP sample.qrels filtered/a.run

# ---- convert, eval ----
convert/graph  convert $g --write-qrels out.qrels --write-questions out.tsv
convert/sides  convert $g --write-qrels out.qrels --split valid --sides <head|tail|relation>
convert/context  convert --graph timed:timed --context time --write-qrels out.qrels
    --write-questions out.tsv
convert/qualifiers  convert --graph statements:statements --context qualifiers --sides qualifier
    --write-qrels out.qrels.gz --write-questions out.tsv
eval/official  eval trec/qrels.txt trec/r.run
eval/all  eval -q -m all_trec trec/qrels.txt trec/r.run.gz
eval/compat-9  eval --compat 9 -q -m all_trec trec/qrels.txt trec/t.run
eval/options  eval -m all_trec -l2 -J -M 10 -N 1000 <-c|-n|-q> trec/qrels.txt trec/t.run
eval/parameters  eval -m map_cut.20 -m P.5,10 -m ndcg.1=3,2=9 -m rbp.p=0.8 -m utility.1,-1,0,0
    -m set_F.0.5 -m iprec_at_recall.0.1,0.25 -m Rprec_mult.0.5 -m relstring.8 -q
    trec/qrels.txt trec/s.run
eval/ties  eval --ties <expected|min|max> -q trec/qrels.txt trec/s.run
eval/ci  eval --ci 95 --resamples 200 --seed 4 -m map -m num_ret trec/qrels.txt trec/r.run
eval/formats  eval -m map -m P.5 -q trec/qrels.txt trec/r.run trec/s.run trec/t.run
    --format <trec|tsv|csv|json|markdown|latex>
eval/kg  eval -m kg_mr,kg_mrr,kg_hits.1,10,kg_amr,kg_amri --n-entities 893 -q q.qrels a.run
eval/graph  eval -m kg_mrr -m map $g q.qrels a.run b.run --format json
eval/zscores  eval -Z trec/z.txt -m map -q trec/qrels.txt trec/r.run
eval/prefs  eval -R prefs -m all_prefs -q trec/prefs.txt trec/r.run
eval/qrels-prefs  eval -R qrels_prefs -m all_prefs trec/qrels_prefs.txt trec/r.run
eval/groups  eval -R qrels_jg -m qrels_jg -q trec/groups.txt trec/r.run
eval/engines  eval --show-engines -m map -m infAP trec/qrels.txt trec/r.run
eval/explained  eval -h -m all_trec -m all_prefs -m qrels_jg -m kg_mrr
"""

REAL = """
real/stats  stats fb/graph --format <table|json>
real/convert  convert --graph fb/graph --write-qrels fb/q.qrels --write-questions fb/questions.tsv
real/rank/distmult  rank $real --scores fb/distmult.npz -o fb/distmult.parquet
    --write-run fb/distmult.run
    --run-depth 100
real/rank/complex  rank $real --scores fb/complex.npz -o fb/complex.parquet
    --write-run fb/complex.run
    --run-depth 100
real/rank/transe  rank $real --scores fb/transe.npz -o fb/transe.parquet --write-run fb/transe.run
    --run-depth 100
real/rank/rotate  rank $real --scores fb/rotate.npz -o fb/rotate.parquet --write-run fb/rotate.run
    --run-depth 100
real/report  report fb/<distmult|complex|transe|rotate>.parquet --format json
real/report/relation  report fb/<distmult|complex|transe|rotate>.parquet --by relation
real/report/category  report fb/<distmult|complex|transe|rotate>.parquet --by category,side $real
real/report/rank-types  report fb/<distmult|complex|transe|rotate>.parquet --rank-types
real/compare  compare fb/distmult.parquet fb/complex.parquet fb/transe.parquet fb/rotate.parquet
    $few
real/eval  eval -m all_trec fb/q.qrels fb/distmult.run
real/eval/table  eval -m map -m ndcg_cut.20 -m kg_mrr --ties expected --format csv fb/q.qrels
    fb/distmult.run fb/complex.run fb/transe.run fb/rotate.run
"""

SHORT |= {
    "real": "--graph fb/graph",
    "few_not_t": "--resamples 200",
    "embeddings": "--left align/left.npy --right align/right.npy --pairs align/pairs.tsv",
    "classified": "--valid-triples classify/valid.tsv --test-triples classify/test.tsv",
}

# ---- values of public functions ----

COLUMNS = (
    "triple", "question", "side", "relation", "given", "answer", "greater", "equal", "tied_ahead",
    "candidates", "macro_greater", "macro_equal", "macro_tied_ahead", "macro_candidates",
    "answer_popularity", "relation_popularity", "answer_nan", "macro_answer_nan", "given_relation",
    "given_tail", "context", "full_candidates", "unlisted", "macro_unlisted", "relation_labels",
)  # fmt: skip

# ``name  expression``, over the names of `world`.
VALUES = """
names/kgtrec  sorted(kgtrec.__all__)
names/study  sorted(study.__all__)
names/plots  sorted(plots.__all__)
names/trec  sorted(trec.__all__)
names/measures  sorted(measures.__all__)
names/cluster  sorted(cluster.__all__)

# ---- results: keys, values, and every measure ----
result/keys/factor-noise  dict(result)
result/keys/tied  dict(tied)
result/keys/raw  dict(load("raw"))
result/keys/sampled  dict(load("sampled"))
result/keys/timed  dict(load("timed"))
result/keys/statements  dict(load("statements"))
result/keys/qualifier  dict(load("qualifier"))
result/keys/relation  dict(load("relation"))
result/keys/lists  dict(load("lists"))
result/measures/tied  every(tied)
result/measures/timed  every(load("timed"))
result/measures/relation  every(load("relation"))
result/measures/lists  every(load("lists"))
result/measures/sampled  every(load("sampled"))
result/asked  dict(kgtrec.evaluate(scores, questions, ["mrr", "tail.macro.hits@5", "map_cut_20",
    "bpref"]))
result/filters  {name: dict(each) for name, each in
    kgtrec.evaluate(scores, graph.questions_by_filter(["raw", "test"])).items()}
result/trec  {name: result[name] for name in trec_names}
result/per-question  {name: result.per_question(name) for name in trec_names}
result/repr  [repr(result), repr(ranks), repr(run), repr(questions), repr(graph),
    str(graph.summary())]
result/text  str(tied)
result/json  result.to_json()
result/csv  result.to_csv()
result/markdown  result.to_markdown()
result/latex  result.to_latex()
result/html  [result._repr_html_(), ranks._repr_html_(), questions._repr_html_(),
    graph._repr_html_()]
result/frame  result.to_frame().to_csv()
result/rank-types  str(result.rank_types(["mrr", "amri"]))
result/slices  {name: str(result.slice(name, graph=graph)) for name in ("relation", "category",
    "quartile")}
result/tie-report  tied.ranks.tie_report()
result/rank-kinds  {kind: tied.ranks.rank(kind) for kind in measures.RANK_TYPES if kind !=
    "expected"}
result/comparable  [kgtrec.comparable(result, load(name)) for name in ("a", "raw", "sampled",
    "timed")]
result/description  ranks.manifest
result/question-fingerprints  [questions.fingerprint, graph.fingerprint,
    load("timed").ranks.question_ids[:5]]
measures/registry  [(m.name, m.title, m.higher_is_better, m.range, m.averagings, m.aliases,
    m.digits)
    for m in measures.METRICS]
measures/headings  [str(measures.Measure.parse(name)) for name in
    ("mrr", "tail.hits@10", "macro.mrr", "expected.relation.p_mrr@0.5", "map_cut_20", "AMRI")]
measures/depths  [measures.required_depth(name) for name in ("map_cut_20", "P_10", "bpref")]
measures/random  {name: measures.random_scorer(name, [10, 20, 893]) for name in
    ("mr", "mrr", "hits@10", "gmr", "log_mrr", "p_mrr@0.5")}
measures/grid  measures.stratified_grid(ranks, [-1.0, 0.0, 0.5], [0.0, 1.0], ["mrr", "hits@10"])

# ---- ranking: types, directions, batches, ranges, tolerance ----
ranking/float64  ranked(scores.astype("f8"), questions, run_depth=9)
ranking/float16  ranked(scores.astype("f2"), questions, run_depth=9)
ranking/distances  ranked(-scores, questions, run_depth=9, higher_is_better=False)
ranking/one-thread  ranked(scores, questions, run_depth=9, threads=1)
ranking/nan  ranked(holes, questions, run_depth=900, nan="worst")
ranking/tolerance  ranked(scores, questions, run_depth=9, atol=0.1, rtol=0.01)
ranking/columns  ranked(scores[:, ::-1], questions, columns=list(graph.entities)[::-1])
ranking/instances  ranked(instances, questions, rows="instances", run_depth=9)
ranking/factors  ranked(kgtrec.Factors(**dot), questions, run_depth=9)
ranking/factors-l2  ranked(kgtrec.Factors(**dot, metric="l2"), questions, run_depth=9)
ranking/factors-l1  ranked(kgtrec.Factors(**dot, metric="l1"), questions, run_depth=9)
ranking/factors-tolerance  ranked(kgtrec.Factors(**dot), questions, atol=0.5)
ranking/candidates  ranked(scores, questions.restrict(candidates=drawn, outside="worst"),
    run_depth=9)
ranking/entities  ranked(scores, graph.questions(entities=range(0, 893, 2)), run_depth=9)
ranking/sides  {side: ranked(scores[questions.side == at], graph.questions(sides=side))
    for at, side in enumerate(("head", "tail"))}
ranking/batches  streamed(scores, questions, 37, run_depth=9)
ranking/partials  in_parts(scores, questions, run_depth=9)
ranking/ranges  in_ranges(scores, questions, run_depth=9)
ranking/cluster  both(*cluster.rank(scores, questions, run_depth=9))
ranking/lists  columns(kgtrec.rank_lists("lists.jsonl", small.questions(), "jsonl"))
ranking/subset  columns(ranks.subset(slice(3, 99, 5)))
ranking/concat  columns(kgtrec.Ranks.concat([ranks.subset(slice(0, 9)), ranks.subset(slice(50,
    70))]))
questions/arrays  {name: getattr(questions, name) for name in ("entity", "relation", "side",
    "candidates",
    "macro_candidates", "relation_counts", "triples", "column")}
questions/described  {name: value for name, value in questions.describe().items()}
questions/ids  questions.ids

# ---- TREC ----
trec/evaluate  trec.evaluate("trec/qrels.txt", "trec/s.run", ["map", "P.5,10", "ndcg", "bpref"])
trec/native  trec.native_values(ranks, ["map_cut_20", "P_5", "ndcg_cut_10", "recall_20"])
trec/run  trec.read_run("trec/s.run")
trec/qrels  trec.read_qrels("trec/qrels.txt")

# ---- studies ----
study/popularity  [study.entity_popularity(graph), study.relation_popularity(graph, "train")]
study/correlations  study.popularity_correlations(graph)
study/frequencies  [study.entity_frequencies(graph), study.relation_frequencies(graph, "test")]
study/mix  study.triple_mix(graph, 75.0)
study/categories  str(study.relation_categories(graph).table(graph))
study/leaks  study.find_leaks(graph)
study/divergences  str(study.split_divergences(graph))
study/ratios  [study.relation_ratios([3, 4, 5]), study.kl_divergence([1, 2, 3], [3, 2, 1])]
study/counts  study.read_relation_counts("half.tsv")
study/reweighted  [study.reweighted(result, "mrr", study.read_relation_counts("half.tsv")),
    str(study.reweighted_table(result, study.read_relation_counts("half.tsv")))]
study/beta-curve  study.beta_curve(ranks, points=[-1, 0, 1])
study/beta-grid  study.beta_grid(ranks, [-1, 1], [0, 1], ["mrr"])
study/recounted  columns(study.recounted(ranks, graph, "train", "train"))
study/bounds  [str(study.full_bounds(load("sampled").ranks)),
    study.rank_bounds(load("sampled").ranks)]
study/estimates  study.estimate_full(scores, questions, 40, full=50)
study/alignment  dict(study.align(pairs, left, right, csls=3))
study/sizes  study.size_experiment(pairs, left, right, sizes=[20, 50], repeats=2)
study/semantics  study.semantic_shares({"a": "a.run"}, questions, study.fitting_observed(graph))
study/classified  study.classify(*labelled, resampling=drawn_100)
study/samples  [(s.name, s.values) for s in study.samples_of_ranks({"a": ranks, "b": tied.ranks},
    ["mrr", "macro.mrr"])]
study/compare  study.compare(study.samples_of_ranks({"a": ranks, "b": tied.ranks}, ["mrr"])[0], "t",
    resampling=drawn_100)
study/pairwise  study.pairwise(study.samples_of_ranks({"a": ranks, "b": tied.ranks}, ["mrr"])[0],
    permutations=500)
study/replicates  study.compare_replicates({"x": [ranks, tied.ranks], "y": [tied.ranks, ranks]},
    ["mrr"], resampling=drawn_100)
study/multiplicity  study.multiplicity({"a": ranks, "b": tied.ranks}, 0.5)
study/correlation  [study.tau_b([1, 2, 3], [3, 1, 2]), study.tau_ap([1, 2, 3], [3, 1, 2]),
    study.ranking_correlation([1, 2, 3, 3], [1, 3, 2, 3])]
study/overlap  [study.rank_biased_overlap("abc", "cbx"), study.tau_union("abc", "cbx")]
study/over-systems  study.over_systems([1, 2, 3, 4], [2, 1, 4, 3], resampling=drawn_100)
study/values  study.values_of_table(study.read_value_table("complete.csv"), ["micro_mrr"])
study/rankings  study.rankings_of_values({"x": [1, 2, 3], "y": [2, 1, 3]}, ["a", "b", "c"],
    resampling=drawn_100)
study/depth-curves  study.depth_curves({"x": [[1, 2, 3], [2, 1, 3]]}, [1, 5])
study/seeds  study.sample_seeds(graph, size=9)
study/changes  study.answer_changes({"a": ranks, "b": tied.ranks})
study/family-tree  study.family_tree(2, 30, 2, 3)
study/removal  study.random_removal(graph.splits["train"], 0.5)
study/model-table  study.table_of_models({"g": {"a": ranks, "b": tied.ranks}}, ["mrr", "hits@10"])

# ---- figures that no command draws ----
plots/over-relations  plots.over_relations({"A": [0.1, 0.4, 0.9], "B": [0.2, 0.3, 0.5]}, "MRR")
plots/relations  plots.relations({"A": result, "B": tied}, "hits@10")
plots/rank-types  plots.rank_types({"A": result, "B": tied})
plots/popularity  plots.popularity({"entities": study.entity_frequencies(graph)})
plots/beta-heat-map  plots.beta_heat_map(study.beta_grid(ranks, metrics=["mrr"]))
"""


def world(home: Path) -> dict[str, Any]:
    """The names for the expressions of `VALUES` and of the wrong calls."""
    graph = kgtrec.read_graph(home / "demo/graph")
    questions = graph.questions()
    scores = np.load(home / "a.npy")
    ranks, run = kgtrec.rank(scores, questions, run_depth=20, progress=False)
    with np.load(home / "dot.npz") as arrays:
        dot = {name: arrays[name] for name in ("queries", "entities")}
    valid, test = (
        study.read_labelled(home / f"classify/{name}.tsv", {}) for name in ("valid", "test")
    )
    return {
        "np": np, "kgtrec": kgtrec, "study": study, "plots": plots, "trec": trec,
        "measures": measures, "cluster": cluster, "Path": Path,
        "graph": graph, "questions": questions, "scores": scores, "ranks": ranks, "run": run,
        "result": kgtrec.evaluate(scores, questions),
        "tied": kgtrec.evaluate(np.load(home / "b.npy"), questions),
        "holes": np.load(home / "nan.npy"), "instances": np.load(home / "instances.npy"),
        "dot": dot, "small": kgtrec.read_graph(home / "small/tsv"),
        "drawn": [np.arange(row % 7, graph.n_entities, 7) for row in range(len(questions))],
        "left": np.load(home / "align/left.npy"), "right": np.load(home / "align/right.npy"),
        "drawn_100": study.Resampling(resamples=100),
        "pairs": np.column_stack([np.arange(20, 120)] * 2), "labelled": (test, valid),
        "trec_names": ["map", "map_cut_20", "ndcg_cut_20", "P_10", "recip_rank", "bpref", "Rprec"],
        "load": lambda name: kgtrec.Result(kgtrec.Ranks.load(home / f"{name}.parquet")),
        "every": every, "columns": columns, "both": both, "ranked": ranked, "streamed": streamed,
        "in_parts": in_parts, "in_ranges": in_ranges,
    }  # fmt: skip


def every(result: kgtrec.Result) -> dict[str, Any]:
    """Every measure by averaging, rank type and side, or the reason why there is none."""
    found: dict[str, Any] = {}
    for side, kind, metric in product(result.sides, measures.RANK_TYPES, measures.METRICS):
        name = metric.name.replace("@k", "@10").replace("@p", "@0.5")
        for averaging in metric.averagings:
            key = f"{side}.{kind}.{averaging}.{name}"
            try:
                found[key] = result[key]
            except (kgtrec.KgtrecError, KeyError) as error:
                found[key] = f"{type(error).__name__}: {error}"
    return found


def columns(ranks: kgtrec.Ranks) -> dict[str, Any]:
    return {name: getattr(ranks, name) for name in COLUMNS}


def both(ranks: kgtrec.Ranks, run: kgtrec.Run) -> dict[str, Any]:
    lists = {"offsets": run.offsets, "documents": run.documents, "scores": run.scores}
    return columns(ranks) | lists | {"manifest": ranks.manifest}


def ranked(scores: Any, questions: kgtrec.Questions, **options: Any) -> dict[str, Any]:
    return both(*kgtrec.rank(scores, questions, progress=False, **options))


def streamed(scores: Any, questions: kgtrec.Questions, size: int, **options: Any) -> dict[str, Any]:
    """Batch by batch, the last one first."""
    ranker = kgtrec.Ranker(questions, **options)
    for batch in reversed(list(ranker.batches(size))):
        ranker.update(batch, scores[batch.start : batch.stop])
    return both(*ranker.finish())


def in_parts(scores: Any, questions: kgtrec.Questions, **options: Any) -> dict[str, Any]:
    """Rank half of the batches in each of two rankers."""
    rankers = [kgtrec.Ranker(questions, **options) for _ in range(2)]
    for number, batch in enumerate(rankers[0].batches(50)):
        rankers[number % 2].update(
            np.arange(batch.start, batch.stop), scores[batch.start : batch.stop]
        )
    rankers[0].merge(rankers[1])
    return both(*rankers[0].finish())


def in_ranges(scores: Any, questions: kgtrec.Questions, **options: Any) -> dict[str, Any]:
    """Range by range of the entities."""
    answers = kgtrec.AnswerScores(questions)
    ranges = [(low, scores[:, low : low + 300]) for low in range(0, questions.n_entities, 300)]
    for low, block in ranges:
        answers.fill(block, low)
    return both(*kgtrec.merge_ranges(
        [kgtrec.rank_range(block, answers, low, **options) for low, block in ranges], answers
    ))  # fmt: skip
