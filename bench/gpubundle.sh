#!/bin/sh
# Tests and measures Mercer on this machine's GPU. `make gpu-bundle` writes this script
# to build/gpu/run, beside the compressed programs that it runs: mercer,
# cuda.test and driver.test. It needs the NVIDIA driver and, for the levels cuBLAS and
# cuSOLVER, the CUDA libraries, but neither Go nor a compiler. MERCER_CUDA_LIBDIR names
# a folder of CUDA libraries, or of simulated ones.
#
# The steps are in the order of their importance. Each has its own time limit, and a step
# that does not fit into the remaining time of --budget seconds is skipped. After each
# step the files results.json, log.txt and report.md are replaced by complete new ones.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
size=quick out='' budget=540 began=$(date +%s)
while [ $# -gt 0 ]; do
	case $1 in
	--size | --out | --budget) [ $# -gt 1 ] || { echo "run: $1 needs a value" >&2; exit 2; } ;;
	*) echo "usage: run [--size tiny|quick|full] [--budget SECONDS] [--out FOLDER]" >&2; exit 2 ;;
	esac
	case $1 in
	--size) size=$2 ;;
	--out) out=$2 ;;
	--budget) budget=${2%s} ;;
	esac
	shift 2
done
case $budget in
'' | *[!0-9]*) echo "run: --budget: want seconds, such as 540 or 540s, got \"$budget\"" >&2; exit 2 ;;
esac
fit=2048,8192,32768 fits=300 levels='solver driver' peers=torch
# The tests that need a real GPU, because they check large matrices, or which triangle NVIDIA's
# libraries write and how they round.
card='^(TestLargeOddFit|TestBeyond32Bits|TestPotrfPreservesTriangle|TestReducedPrecisionFactor|TestThin|TestFewFeatures|TestSymmetricKernelProduct)$'
case $size in
tiny) # for the simulated libraries
	fit=24,48 fits=20 card='^(TestReducedPrecisionFactor|TestLargeOddFit)$' levels=solver peers=none ;;
quick) ;;
full) fit=2048,8192,32768,50000,100000 fits=2000 ;;
*) echo "run: --size: \"$size\" is not known; the choices are: tiny, quick, full" >&2; exit 2 ;;
esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
programs=$here
if [ -e "$here/mercer.gz" ]; then
	programs=$work/programs
	mkdir "$programs"
	for name in mercer cuda.test driver.test; do
		gunzip -c "$here/$name.gz" >"$programs/$name" && chmod +x "$programs/$name" || exit 1
	done
fi
from=$(date +%s) # cold: the libraries are read from the disk
if ! timeout -k 5 120 "$programs/mercer" devices --device cuda/0 >/dev/null 2>&1; then
	"$programs/mercer" devices
	echo "run: there is no GPU to measure; the line of cuda/0 says why" >&2
	exit 1
fi
out=${out:-$here/results-$(date -u +%Y%m%d-%H%M%S)}
mkdir -p "$out" && out=$(cd "$out" && pwd) && cd "$work" || exit 1
export MERCER_REQUIRE="${MERCER_REQUIRE:+$MERCER_REQUIRE,}cuda,cases" # no test of the GPU may skip, or run only a few of its cases
failed=0 measured=''
: >steps.json
printf '%-12s %-8s %7s s  %s\n' cold passed "$(($(date +%s) - from))" "the first opening of the device" >summary
: >log
: >figures

# lines_of FILE makes JSON of the outcomes and figures of a Go test's output.
lines_of() {
	awk '
	function quoted(s) { gsub(/[\\"]/, "\\\\&", s); gsub(/[\001-\037]/, " ", s); return "\"" s "\"" }
	/^ *--- (PASS|FAIL|SKIP): / {
		time = $NF; gsub(/[()s]/, "", time)
		name = $0; sub(/^ *--- [A-Z]+: /, "", name); sub(/ \([0-9.]+s\)$/, "", name)
		tests = tests sep "{\"name\":" quoted(name) ",\"outcome\":\"" substr($2, 1, 4) "\",\"seconds\":" time + 0 "}"; sep = ","
	}
	/^Benchmark[^ \t]*[ \t]+[0-9]+[ \t]/ {
		values = ""; first = ""
		for (i = 3; i < NF; i += 2) { values = values first quoted($(i + 1)) ":" $i + 0; first = "," }
		figures = figures comma "{\"name\":" quoted($1) ",\"values\":{" values "}}"; comma = ","
	}
	END { printf ",\"tests\":[%s],\"figures\":[%s]", tests, figures }' "$1"
}

# text_of makes a JSON string of a line.
text_of() { printf '%s' "$1" | awk '{ gsub(/[\\"]/, "\\\\&"); gsub(/[\001-\037]/, " "); printf "%s", $0 }'; }

# publish writes results.json, log.txt and report.md, with the results so far, to the folder $out.
publish() {
	{
		printf '{"schema":"mercer-gpu/1","size":"%s","budget":%d,"failed":%d,"steps":[' "$size" "$budget" "$failed"
		paste -sd, steps.json
		echo ']}'
	} >"$out/.results" && mv "$out/.results" "$out/results.json"
	cp log "$out/.log" && mv "$out/.log" "$out/log.txt"
	{
		printf '# Mercer on a GPU\n\n```\n'
		cat summary
		printf '```\n\n'
		# shellcheck disable=SC2086 # a list of files
		if [ -n "$measured" ]; then "$programs/mercer" bench report $measured --out page.md && cat page.md; fi
		if [ -s figures ]; then
			printf '\n```\n'
			cat figures
			printf '```\n'
		fi
	} >"$out/.report" && mv "$out/.report" "$out/report.md"
}

# omit NAME REASON reports a step that cannot run here.
omit() {
	printf '%-12s left out: %s\n' "$1" "$2" >>summary
	printf '{"name":"%s","outcome":"left out","seconds":0,"note":"%s"}\n' "$1" "$2" >>steps.json
	publish
}

# step NAME SECONDS COMMAND... runs a program for at most SECONDS.
step() {
	name=$1 limit=$2 outcome=passed note='' extra=''
	shift 2
	left=$((budget - ($(date +%s) - began) - 20))
	[ "$limit" -le "$left" ] || limit=$left
	file=$name.txt
	if [ "$limit" -lt 5 ]; then
		outcome='left out' took=0
	else
		echo "$name ..."
		from=$(cut -d ' ' -f 1 /proc/uptime)
		case $* in *' bench '*) file=$name.json ;; esac
		timeout -k 5 "$limit" "$@" >"$file" 2>"$name.err"
		code=$?
		took=$(awk -v from="$from" '{ printf "%.2f", $1 - from }' /proc/uptime)
		case $code in
		0) ;;
		124 | 137) outcome=cut ;; # what it printed counts
		*) outcome=FAILED ;;
		esac
		{
			printf '\n=== %s: %s\n' "$name" "$*"
			[ "$file" = "$name.json" ] || cat "$file"
			cat "$name.err"
		} >>log
		case $* in
		*.test\ *)
			passes=$(grep -c -e '--- PASS' "$file") fails=$(grep -c -e '--- FAIL' "$file") marks=$(grep -c '^Benchmark.*/' "$file")
			note="$passes passed, $fails failed, $(grep -c -e '--- SKIP' "$file") skipped, $marks figures"
			[ "$fails" -eq 0 ] && [ $((passes + marks)) -gt 0 ] || outcome=FAILED # no test run is a failure too
			grep '^Benchmark' "$file" >>figures
			extra=$(lines_of "$file") ;;
		*' bench '*)
			note=$(tail -n 1 "$name.err")
			if [ "$outcome" = passed ]; then
				measured="$measured $file" extra=",\"measurement\":$(cat "$file")"
			fi ;;
		*) note=$(tail -n 1 "$name.err") extra=",\"text\":\"$(awk '{ gsub(/[\\"]/, "\\\\&"); gsub(/[\001-\037]/, " "); printf "%s\\n", $0 }' "$file")\"" ;;
		esac
	fi
	[ "$outcome" != FAILED ] || failed=1
	printf '%-12s %-8s %7s s  %s\n' "$name" "$outcome" "$took" "$note" >>summary
	printf '{"name":"%s","outcome":"%s","seconds":%s,"note":"%s"%s}\n' "$name" "$outcome" "$took" "$(text_of "$note")" "$extra" | tr '\n' ' ' >>steps.json
	echo >>steps.json
	publish
}

# List the libraries, their versions and the searched folders. Without cuSOLVER the
# other steps would measure another algorithm.
# shellcheck disable=SC2016
step machine 20 sh -c '"$0"/mercer devices && if command -v nvidia-smi >/dev/null; then nvidia-smi -q; fi; "$0"/mercer devices | grep libcusolver >/dev/null || { echo "cuSOLVER is not there: the lines above say where it was looked for; MERCER_CUDA_LIBDIR names a folder" >&2; exit 1; }' "$programs"
awk 'BEGIN { print "x,y"; for (i = 0; i < 64; i++) print sin(i * i) "," cos(i) }' >table.csv
step start-up 30 "$programs/mercer" fit --quiet --device cuda/0 --solver dual --kernel 'gaussian(sigma=1)' --lambda 0.1 --target y --model start-up.safetensors table.csv
step again 30 "$programs/mercer" fit --quiet --device cuda/0 --solver dual --kernel 'gaussian(sigma=1)' --lambda 0.1 --target y --model again.safetensors table.csv
# The tests with failing calls are not run here, because they test Go code, for which the simulated
# driver is enough.
step card 60 "$programs/cuda.test" -test.v -test.short -test.run="$card"
for level in $levels; do
	step "$level" 60 "$programs/cuda.test" -test.v -test.short -test.run="^TestConformance\$/^$level\$"
done
sampler=''
if command -v nvidia-smi >/dev/null; then # clocks and power under load
	nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv -l 5 >clocks 2>&1 &
	sampler=$!
fi
step roofline 120 "$programs/cuda.test" -test.run='^$' -test.bench=Roofline -test.benchtime=1x
if [ -n "$sampler" ]; then
	kill "$sampler"
	{
		printf '\n=== clocks during roofline\n'
		cat clocks
	} >>log
fi
step own 90 "$programs/cuda.test" -test.run='^$' -test.bench=Own -test.benchtime=1x
step fits 140 "$programs/cuda.test" -test.run='^$' -test.bench=Fits -test.benchtime=1x
step peers 60 "$programs/mercer" bench fit --quiet --json --quick --fit ridge --device cuda/0 --n "$fit" --d 50 --repeats 1 --peers "$peers"
step leaks 30 "$programs/cuda.test" -test.v -test.run='^TestManyFitsLeaveNothing$' -fits "$fits"
toolkit=''
for folder in /usr/local/cuda "$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)"/cu13; do
	[ -n "$toolkit" ] || [ ! -e "$folder/include/cusolverDn.h" ] || toolkit=$folder
done
PATH=$PATH:/usr/local/cuda/bin
if command -v compute-sanitizer >/dev/null; then
	step memcheck 60 compute-sanitizer --tool memcheck --error-exitcode 1 "$programs/cuda.test" -test.v -test.run='^(TestThin|TestFewFeatures|TestSmallBuffers)$'
	step racecheck 60 compute-sanitizer --tool racecheck --error-exitcode 1 "$programs/cuda.test" -test.v -test.run='^(TestThin|TestFewFeatures)$'
else
	omit memcheck 'compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin'
fi
if [ -n "$toolkit" ] && command -v gcc >/dev/null; then
	step prototypes 20 env MERCER_CUDA_TOOLKIT="$toolkit" "$programs/driver.test" -test.v -test.run='^Test(Prototypes|LibrariesHaveSymbols)$'
else
	omit prototypes 'there is no gcc, or no cusolverDn.h in /usr/local/cuda or in the packages of python3'
fi
step libraries 20 "$programs/driver.test" -test.v -test.skip='^Test(Prototypes|LibrariesHaveSymbols)$'
if [ "$size" != tiny ]; then
	step tests 1500 "$programs/cuda.test" -test.v -test.skip='^TestFaults$' -test.timeout=25m
fi
echo
cat summary
echo "$out"
exit $failed
