#!/bin/sh
# The PASS paper's benchmarks in a real Linux in simulated time: docs/schedulers/pass-in-linux.md. Each part is a table or a figure; a run that is there
# already is not made again, so that what was stopped goes on.
#
#     scripts/pass-paper.sh [PART...]      parts: models table2 figure8 figure9 figure10 causes erases; all of them without. Only `models` needs no Linux
#
# PLANEWISE  the program               (default: target/release/planewise)
# OUT        what comes out            (default: target/pass-paper): PART.tsv, and runs/ with a results.json for each call of the program
# SEEDS      replicates                (default: "1 2")
# JOBS       guests at the same time   (default: 1)
set -eu

cd "$(dirname "$0")/.."
PLANEWISE=${PLANEWISE:-target/release/planewise}
OUT=${OUT:-target/pass-paper}
SEEDS=${SEEDS:-1 2}
JOBS=${JOBS:-1}
HERE=scripts/pass-paper

fail() {
    echo "pass-paper.sh: $1" >&2
    exit 1
}

[ -x "$PLANEWISE" ] || fail "no program at $PLANEWISE: cargo build --release, or name it with PLANEWISE="
command -v python3 >/dev/null || fail "no python3: apt install python3"
mkdir -p "$OUT/runs" "$OUT/recipes" "$OUT/traces"

PLAIN=none,mq-deadline,kyber,bfq

# guest NAME RECIPE OPTION...: one call of the program, kept under its name. A name stands for all that the call was given.
guest() {
    name=$1
    recipe=$2
    shift 2
    [ -s "$OUT/runs/$name.json" ] && return 0
    echo "$name" >&2
    "$PLANEWISE" linux --json --quiet --jobs "$JOBS" --recipe "$recipe" --out "$OUT/guest" --force "$@" >"$OUT/runs/$name.part" ||
        fail "$name: see $OUT/runs/$name.part"
    mv "$OUT/runs/$name.part" "$OUT/runs/$name.json"
}

# schedulers NAME RECIPE OPTION...: the kernel's four and planewise-pass with each barrier.
schedulers() {
    stem=$1
    shift
    guest "$stem,plain" "$@" --schedulers "$PLAIN,planewise-pass"
    for barrier in region device; do
        guest "$stem,$barrier" "$@" --schedulers planewise-pass --attribute iosched/barrier=$barrier
    done
}

# few NAME RECIPE OPTION...: of the kernel's four those that matter for a cause.
few() {
    stem=$1
    shift
    guest "$stem,plain" "$@" --schedulers none,mq-deadline,planewise-pass
    for barrier in region device; do
        guest "$stem,$barrier" "$@" --schedulers planewise-pass --attribute iosched/barrier=$barrier
    done
}

# files_recipe NAME: a recipe of files that runs what is on standard input; its path.
files_recipe() {
    {
        sed '/^@RUN@$/,$d' $HERE/files.toml
        cat
        sed '1,/^@RUN@$/d' $HERE/files.toml
    } >"$OUT/recipes/$1.toml"
    echo "$OUT/recipes/$1.toml"
}

# file_benchmark THREADS MIB FLAGS REQUESTS SEED: section 4.1, a process of one thread for each file, half of the requests of 4 KiB reads.
file_benchmark() {
    extra=
    [ "$3" = buffered ] || extra=--file-extra-flags=$3
    files_recipe "files-$1-$2-$3-$4-$5" <<END
i=0
while [ \$i -lt $1 ]; do
    mkdir -p t\$i
    [ -e t\$i/test_file.0 ] || mv test_file.\$i t\$i/test_file.0
    i=\$((i + 1))
done
i=0
while [ \$i -lt $1 ]; do
    (
        cd t\$i
        sysbench fileio --file-total-size=$2M --file-num=1 --file-test-mode=rndrw --file-block-size=4096 --file-rw-ratio=1 $extra \\
            --file-fsync-freq=0 --file-fsync-end=off --threads=1 --events=$4 --time=0 --rand-seed=\$(($5 * 100 + i)) run >/tmp/out\$i
    ) &
    i=\$((i + 1))
done
wait
cat /tmp/out* | awk '
    /reads\/s:/ { reads = \$2 }
    /writes\/s:/ { writes = \$2 }
    /total time:/ { time = \$3 + 0; if (time > most) most = time; all_reads += reads * time; all_writes += writes * time }
    /95th percentile:/ { if (\$3 > late) late = \$3 }
    END { printf "reads/s: %.2f\nwrites/s: %.2f\nfsyncs/s: 0\ntotal time: %.4fs\n95th percentile: %.2f\n", all_reads / most, all_writes / most, most, late }'
END
}

# file_order OPTION...: the commands that run file-order.lua, and say of it what sysbench says of its own test.
file_order() {
    echo "cat >/tmp/file-order.lua <<'LUA'"
    cat $HERE/file-order.lua
    cat <<END
LUA
ulimit -n 65536
head -c 4096 /dev/zero >/tmp/counters
sysbench /tmp/file-order.lua $* --time=0 run >/tmp/out || { cat /tmp/out; exit 1; }
time=\$(sed -n 's/.*total time: *\\([0-9.]*\\)s.*/\\1/p' /tmp/out)
od -A n -t d8 -w8 -v -N 64 /tmp/counters | awk -v time=\$time '
    NR == 1 { printf "reads/s: %.2f\\n", \$1 / time }
    NR == 2 { printf "writes/s: %.2f\\n", \$1 / time }
    NR == 8 { printf "fsyncs/s: %.2f\\n", \$1 / time }'
cat /tmp/out
END
}

# file_benchmark_drawn MIB REQUESTS SEED: section 4.1 with four threads that draw what is next, as the model `file-benchmark` does.
file_benchmark_drawn() {
    file_order --order=random --flags=direct --fsync=0 --files=4 --mib=$1 --block=4096 --ratio=1 --requests=$2 --threads=4 --events=$2 --rand-seed=$3 |
        files_recipe "drawn-$1-$2-$3"
}

# sysbench_file THREADS ORDER FLAGS FSYNC SEED: section 4.2, REQUESTS (10,000) requests. Order `sysbench` is the program's own test; the others are those of file-order.lua.
# sysbench 1.0 counts an fsync as a request, and at the end each thread would sync every file: 8,192 fsyncs behind 64 threads, so that is off.
sysbench_file() {
    requests=${REQUESTS:-10000}
    syncs=0
    [ "$4" = 0 ] || syncs=$((requests / $4 * 128))
    case $2 in
    sysbench)
        extra=
        [ "$3" = buffered ] || extra=--file-extra-flags=$3
        echo "sysbench fileio --file-total-size=20G --file-num=128 --file-test-mode=rndrw --file-block-size=16384 --file-rw-ratio=1.5 $extra" \
            "--file-fsync-freq=$4 --file-fsync-end=off --threads=$1 --events=$((requests + syncs)) --time=0 --rand-seed=$5 run"
        ;;
    *)
        file_order --order=$2 --flags=$3 --fsync=$4 --requests=$requests --threads=$1 --events=$((requests + syncs)) --rand-seed=$5
        ;;
    esac | files_recipe "file-$1-$2-$3-$4-$5-$requests"
}

# oltp FLUSH POOL SEED STEP...: section 4.3, steps MODE:THREADS:TRANSACTIONS one after the other in one guest, as most of its time is the server's start.
# What only the run needs is put into its text: a parameter would be one of the set-up, too.
oltp() {
    flush=$1
    pool=$2
    seed=$3
    shift 3
    sed -e "s/@STEPS@/$*/;s/@FLUSH@/$flush/;s/@POOL@/$pool/;s/@SEED@/$seed/" $HERE/oltp.toml >"$OUT/recipes/oltp-$flush-$pool-$seed.toml"
    echo "$OUT/recipes/oltp-$flush-$pool-$seed.toml"
}

STEPS="oltp_point_select:1:1000 oltp_point_select:4:1500 oltp_point_select:16:2000 oltp_point_select:64:2000 oltp_read_write:1:40 oltp_read_write:4:100 oltp_read_write:16:160 oltp_read_write:64:256"

SPREAD="--set files=4 --set mib_on_disk=14336"

table2() {
    for seed in $SEEDS; do
        schedulers "table2,device=ssd1,threads=4,mode=direct,seed=$seed" "$(file_benchmark 4 10240 direct 10000 "$seed")" \
            --device ssd1 --seed "$seed" $SPREAD
    done
    seed=1
    schedulers "table2,device=ssd1,threads=4,mode=sync,seed=$seed" "$(file_benchmark 4 10240 sync 2500 $seed)" --device ssd1 --seed $seed $SPREAD
    # Little memory, so that the kernel has to write back before the run is over: with 8 GB, or 1, nothing would be written.
    schedulers "table2,device=ssd1,threads=4,mode=buffered,seed=$seed" "$(file_benchmark 4 10240 buffered 10000 $seed)" \
        --device ssd1 --seed $seed $SPREAD --memory 192m
}

figure8() {
    for seed in $SEEDS; do
        for number in 1 2 3 4 5 6; do
            size=10240
            place=$SPREAD
            # 40 GB do not fit on the drives of 32 GB.
            case $number in 2 | 4 | 6) size=7000 place="--set files=4 --set mib_on_disk=7000 --set journal=14G" ;; esac
            schedulers "figure8,device=ssd$number,threads=4,mode=direct,seed=$seed" "$(file_benchmark 4 $size direct 2500 "$seed")" \
                --device "ssd$number" --seed "$seed" $place
        done
    done
}

figure9() {
    for seed in $SEEDS; do
        for threads in 1 2 4 8 16 32 64; do
            schedulers "figure9,device=ssd1,threads=$threads,mode=direct,seed=$seed" "$(sysbench_file $threads sysbench direct 100 "$seed")" \
                --device ssd1 --seed "$seed"
        done
    done
    seed=1
    for threads in 1 4 16 64; do
        schedulers "figure9,device=ssd1,threads=$threads,mode=buffered,seed=$seed" "$(sysbench_file $threads sysbench buffered 100 $seed)" \
            --device ssd1 --seed $seed
    done
}

figure10() {
    for seed in $SEEDS; do
        recipe=$(oltp O_DIRECT 8M "$seed" $STEPS)
        run="figure10,device=ssd1,mode=direct,seed=$seed"
        for scheduler in none mq-deadline planewise-pass kyber bfq; do
            guest "$run,plain,$scheduler" "$recipe" --device ssd1 --seed "$seed" --schedulers $scheduler --record "$OUT/traces/oltp-$scheduler-$seed.parquet"
        done
        for barrier in region device; do
            guest "$run,$barrier" "$recipe" --device ssd1 --seed "$seed" --schedulers planewise-pass --attribute iosched/barrier=$barrier \
                --record "$OUT/traces/oltp-planewise-pass-$barrier-$seed.parquet"
        done
    done
    # bfq where it waits for nobody.
    guest "figure10b,device=ssd1,mode=direct,seed=1,plain,bfq" "$(oltp O_DIRECT 8M 1 $STEPS)" --device ssd1 --seed 1 --schedulers bfq \
        --attribute iosched/slice_idle=0
    python3 $HERE/rows.py "$OUT" figure10b
}

# One thing at a time, and two by two.
DRIVES="ssd1 ssd1:interface.command_queue=ncq:8 ssd1:processor.drains_to_turn=true ssd1:processor.turn_ns=0"

causes() {
    seed=1
    for threads in 16 64; do
        # Who decides whether a request reads or writes, and the drive.
        for device in $DRIVES; do
            for order in sysbench issued; do
                few "causes,what=order $order,device=$device,threads=$threads,mode=direct,seed=$seed" \
                    "$(sysbench_file $threads $order direct 100 $seed)" --device "$device" --seed $seed
            done
        done
        for order in completed own random; do
            few "causes,what=order $order,device=ssd1,threads=$threads,mode=direct,seed=$seed" \
                "$(sysbench_file $threads $order direct 100 $seed)" --device ssd1 --seed $seed
        done
    done
    # Table 2: the drive, and how often a turn that waits is passed over.
    recipe=$(file_benchmark 4 10240 direct 2500 $seed)
    drawn=$(file_benchmark_drawn 10240 10000 $seed)
    for device in $DRIVES ssd1:interface.command_queue=ncq:1; do
        few "causes,what=table 2 drawn,device=$device,threads=4,mode=direct,seed=$seed" "$drawn" --device "$device" --seed $seed $SPREAD
        few "causes,what=table 2,device=$device,threads=4,mode=direct,seed=$seed" "$recipe" --device "$device" --seed $seed $SPREAD
        for barrier in region device; do
            guest "causes,what=table 2 and pass_over 0,device=$device,threads=4,mode=direct,seed=$seed,$barrier" "$recipe" --device "$device" --seed $seed \
                $SPREAD --schedulers planewise-pass --attribute iosched/barrier=$barrier --attribute iosched/pass_over=0
        done
    done
    # Kyber: what it wants of writes' latency, and the cost of turns.
    for threads in 8 16; do
        recipe=$(sysbench_file $threads sysbench direct 100 $seed)
        guest "causes,what=order sysbench and kyber's write_lat_nsec 1 s,device=ssd1,threads=$threads,mode=direct,seed=$seed,plain" "$recipe" --device ssd1 \
            --seed $seed --schedulers kyber --attribute iosched/write_lat_nsec=1000000000
        guest "causes,what=order sysbench,device=ssd1:processor.turn_ns=0,threads=$threads,mode=direct,seed=$seed,kyber" "$recipe" \
            --device ssd1:processor.turn_ns=0 --seed $seed --schedulers kyber
    done
    # Figure 8 on drives that empty their data path before they turn.
    for number in 1 2 3 4 5 6; do
        size=10240
        place=$SPREAD
        case $number in 2 | 4 | 6) size=7000 place="--set files=4 --set mib_on_disk=7000 --set journal=14G" ;; esac
        device=ssd$number:processor.drains_to_turn=true
        few "causes,what=figure 8,device=$device,threads=4,mode=direct,seed=$seed" "$(file_benchmark 4 $size direct 2500 $seed)" \
            --device "$device" --seed $seed $place
        few "causes,what=figure 8 drawn,device=$device,threads=4,mode=direct,seed=$seed" "$(file_benchmark_drawn $size 10000 $seed)" \
            --device "$device" --seed $seed $place
    done
    for threads in 16 64; do
        for order in sysbench issued; do
            few "causes,what=order $order and no fsync,device=ssd1,threads=$threads,mode=direct,seed=$seed" \
                "$(sysbench_file $threads $order direct 0 $seed)" --device ssd1 --seed $seed
            few "causes,what=order $order and files packed,device=ssd1,threads=$threads,mode=direct,seed=$seed" \
                "$(sysbench_file $threads $order direct 100 $seed)" --device ssd1 --seed $seed --set mib_on_disk=160
        done
    done
}

# Figure 11 and table 3: what each scheduler's run wrote on ssd1, written again on the paper's drive of 60 GB, as full as it gets.
erases() {
    (SEEDS=1 && figure10)
    recipe=$(REQUESTS=40000 sysbench_file 64 sysbench direct 100 1)
    run="erases,what=record,device=ssd1,threads=64,mode=direct,seed=1"
    for scheduler in none mq-deadline kyber bfq planewise-pass; do
        guest "$run,plain,$scheduler" "$recipe" --device ssd1 --seed 1 --schedulers $scheduler --record "$OUT/traces/file-$scheduler-1.parquet"
    done
    for barrier in region device; do
        guest "$run,$barrier" "$recipe" --device ssd1 --seed 1 --schedulers planewise-pass --attribute iosched/barrier=$barrier \
            --record "$OUT/traces/file-planewise-pass-$barrier-1.parquet"
    done
    for what in file oltp; do
        for trace in none mq-deadline kyber bfq planewise-pass planewise-pass-region planewise-pass-device; do
            for allocation in cwdp concatenated; do
                name="erases,what=replay,trace of=$what,scheduler=$trace,allocation=$allocation"
                [ -s "$OUT/runs/$name.json" ] && continue
                echo "$name" >&2
                "$PLANEWISE" run --json --quiet --trace "$OUT/traces/$what-$trace-1.parquet" --device pass-60g --allocation $allocation --wrap \
                    --condition aged:87/8/5 --out "$OUT/replay" --force >"$OUT/runs/$name.part" || fail "$name: see $OUT/runs/$name.part"
                mv "$OUT/runs/$name.part" "$OUT/runs/$name.json"
            done
        done
    done
}

# The same tests as models of applications, behind the simulator's own schedulers with the queues of Linux 2.6.32.
models() {
    for number in 1 2 3 4 5 6; do
        size=10g
        case $number in 2 | 4 | 6) size=7g ;; esac
        for device in "ssd$number" "ssd$number:processor.drains_to_turn=true"; do
            model "what=file-benchmark,device=$device" --target "sim:$device" --workload file-benchmark --set file_size=$size
        done
    done
    model "what=sysbench-file,device=ssd1" --target sim:ssd1 --workload sysbench-file --vary threads=1,2,4,8,16,32,64
    for device in $DRIVES; do
        for counts in completed issued; do
            model "what=sysbench-file $counts,device=$device" --target "sim:$device" --workload sysbench-file --vary threads=16,64 --set ratio_counts=$counts
        done
    done
    for what in simple complex; do
        requests=1000
        [ $what = complex ] || requests=5000
        model "what=sysbench-oltp-$what,device=ssd1" --target sim:ssd1 --workload sysbench-oltp-$what --vary threads=1,4,16,64 \
            --set "buffer_pool=8m;dist_type=uniform;max_requests=$requests"
    done
}

# model NAME OPTION...
model() {
    stem=models,$1
    shift
    for barrier in none region device; do
        names=pass
        [ $barrier != none ] || names=noop,mq-deadline,kyber,bfq,pass
        [ -s "$OUT/runs/$stem,$barrier.json" ] && continue
        echo "$stem,$barrier" >&2
        "$PLANEWISE" bench --json --quiet --merging full --queue 128 --request-pools two --schedulers $names --tunable pass.barrier=$barrier --jobs "$JOBS" \
            --out "$OUT/model" --force "$@" >"$OUT/runs/$stem,$barrier.part" || fail "$stem: see $OUT/runs/$stem,$barrier.part"
        mv "$OUT/runs/$stem,$barrier.part" "$OUT/runs/$stem,$barrier.json"
    done
}

[ $# -gt 0 ] || set -- models figure9 table2 figure10 figure8 causes erases
for part; do
    case $part in
    models) ;;
    table2 | figure8 | figure9 | figure10 | causes | erases)
        [ -x target/linux/kernel ] || fail "no kernel in target/linux: make linux"
        [ -x target/linux-root/usr/bin/sysbench ] || fail "no programs in target/linux-root: make linux-root"
        [ -f target/kernel/planewise-pass.ko ] || fail "no modules in target/kernel: make kernel KERNEL=target/linux/source"
        ;;
    *) fail "found part '$part'; allowed: models table2 figure8 figure9 figure10 causes erases" ;;
    esac
done
for part; do
    "$part"
    python3 $HERE/rows.py "$OUT" "$part"
done
