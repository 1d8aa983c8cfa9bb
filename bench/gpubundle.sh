#!/bin/sh
# Tests and measures Mercer on this machine's GPU. `make gpu-bundle` puts it into
# build/gpu as run, with what it runs: mercer, cuda.test, driver.test. It needs the
# NVIDIA driver and, for more than the driver's level, the CUDA libraries; no Go, no
# compiler. MERCER_CUDA_LIBDIR names a folder of CUDA libraries, or of the simulated
# ones.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
size=quick out=
while [ $# -gt 0 ]; do
	case $1 in
	--size | --out) [ $# -gt 1 ] || { echo "run: $1 needs a value" >&2; exit 2; } ;;
	*) echo "usage: run [--size tiny|quick|full] [--out FOLDER]" >&2; exit 2 ;;
	esac
	[ "$1" = --size ] && size=$2 || out=$2
	shift 2
done
devices=512,1024,2048,4096,8192,16384 fit=2048,4096,8192,16384 fits=2000 quick=--quick tests=
case $size in
tiny) # for the simulated libraries
	devices=24,48,96 fit=24,48,96 fits=20 quick='--quick --d 4 --repeats 1'
	tests='-test.short -test.run=^(TestConformance|TestSolvers)$/^(solver|dual)$' ;;
quick) ;; # minutes
full) # the sizes of the targets in docs/cuda.md
	devices=512,1024,2048,4096,8192,16384,32768,50000 fit=2048,8192,32768,50000 quick='--repeats 3' ;;
*) echo "run: --size: \"$size\" is not known; there are: tiny, quick, full" >&2; exit 2 ;;
esac
"$here/mercer" devices
if ! "$here/mercer" devices --device cuda/0 >/dev/null 2>&1; then
	echo "run: there is no GPU to measure; the line of cuda/0 says why" >&2
	exit 1
fi
out=${out:-$here/results-$(date -u +%Y%m%d-%H%M%S)}
mkdir -p "$out" && cd "$out" || exit 1
export MERCER_REQUIRE="${MERCER_REQUIRE:+$MERCER_REQUIRE,}cuda" # no test of the GPU may skip
"$here/mercer" devices >devices.txt
: >summary.txt
failed=0

# step NAME COMMAND... runs a program of the bundle; what it prints goes to NAME.txt
# or, of a measurement, to NAME.json, NAME.html and NAME.md.
step() {
	name=$1 program=$2 file=$1.txt began=$(date +%s) outcome=passed
	shift 2
	echo "$name ..."
	[ "${1-}" = bench ] && file=$name.json
	timeout 30m "$here/$program" "$@" >"$file" 2>"$name.err" || outcome=FAILED
	if [ "$file" = "$name.json" ] && [ $outcome = passed ]; then
		"$here/mercer" bench report "$file" --out "$name.html" && "$here/mercer" bench report "$file" --out "$name.md" || outcome=FAILED
	fi
	case $program in
	*.test) # no test run is a failure too
		passes=$(grep -c -e '--- PASS' "$file")
		[ "$passes" -gt 0 ] || outcome=FAILED
		note="$passes passed, $(grep -c -e '--- FAIL' "$file") failed, $(grep -c -e '--- SKIP' "$file") skipped" ;;
	*) note=$(tail -n 1 "$name.err") ;;
	esac
	[ $outcome = passed ] || failed=1
	printf '%-12s %-6s %5d s  %s\n' "$name" $outcome $(($(date +%s) - began)) "$note" >>summary.txt
}

awk 'BEGIN { print "x,y"; for (i = 0; i < 64; i++) print sin(i * i) "," cos(i) }' >table.csv
step start-up mercer fit --quiet --device cuda/0 --solver dual --kernel 'gaussian(sigma=1)' --lambda 0.1 --target y --model start-up.safetensors table.csv
step libraries driver.test -test.v
# shellcheck disable=SC2086 # lists of words
step tests cuda.test -test.v -test.timeout=25m $tests
step leaks cuda.test -test.v -test.run='^TestManyFitsLeaveNothing$' -fits $fits
# shellcheck disable=SC2086
step devices mercer bench devices --quiet --json --device cpu,cuda/0 --n $devices --limit 10s $quick
# shellcheck disable=SC2086
step fit mercer bench fit --quiet --json --fit ridge --device cuda/0 --n $fit --peers torch,cupy,gpytorch $quick
if [ $size = full ]; then
	# shellcheck disable=SC2086
	step product mercer bench devices --quiet --json --device cuda/0 --operation mul --precision float32 --n 65536,262144 --d 3 --peers torch $quick
	# shellcheck disable=SC2086
	step largest mercer bench devices --quiet --json --device cuda/0 --operation factor,fit --precision float64 --n 100000 --limit 5m --peers none $quick
fi
echo
cat summary.txt
echo "$out"
exit $failed
