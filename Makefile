# Mercer's tasks. `make demo` and `make test` need nothing but Go, make and git;
# `make test-all` runs what else is installed.

GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 20000x
BENCHTIME   ?= 1s
BENCH       ?= .
BENCHFLAGS  ?=
TESTFLAGS   ?=
PYTHON      ?= /usr/bin/python3

# cgo is off, so that no C compiler is needed; targets that need cgo turn it on.
export CGO_ENABLED := 0

# Tests and checks use -trimpath, as releases and wheels do, so that all share the build cache.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command, ./bin/mercer
	$(GO) build -o bin/mercer ./cmd/mercer

.PHONY: man
man: ## write the manual pages of the command into ./bin/man (man -M bin/man mercer-fit)
	rm -rf bin/man && mkdir -p bin/man/man1
	MERCER_MAN='$(CURDIR)/bin/man/man1' SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(GO) test -count=1 -run '^TestManPages$$' ./cmd/mercer

.PHONY: libmercer
libmercer: ## build the C shared library, ./bin/libmercer.so, and its header (needs cgo and a C compiler)
	CGO_ENABLED=1 $(GO) build -trimpath -buildmode=c-shared -o bin/libmercer.so ./bindings/c
	cp bindings/c/mercer.h bin/mercer.h
	rm bin/libmercer.h
	cd tools && $(GO) run ./release -licenses ../bin/LICENSES.txt ./bindings/c

.PHONY: libmercer-test
libmercer-test: libmercer ## run the C program that tests the C shared library
	CGO_ENABLED=1 $(GO) vet ./bindings/c
	CGO_ENABLED=1 $(GO) test ./bindings/c
	$(CC) -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -o bin/libmercer-check bindings/c/ctest/check.c -Lbin -lmercer -Wl,-rpath,'$$ORIGIN' -lm -lpthread
	./bin/libmercer-check

WHEELS ?= dist

# hatchling builds the wheel: the installed version if it is at least 1.12, otherwise a version that
# pip fetches. The target wheel-needs checks this before the library is compiled.
INSTALLED := $(PYTHON) -c 'from importlib.metadata import version; exit([int(n) for n in version("hatchling").split(".")[:2]] < [1, 12])' 2>/dev/null

.PHONY: wheel-needs
wheel-needs:
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { echo 'wheel: $(PYTHON) has no pip: install it, or name another Python by PYTHON='; exit 1; }
	@$(INSTALLED) || $(PYTHON) -m pip download --quiet --no-deps --dest build/.hatchling 'hatchling>=1.12' >/dev/null 2>&1 || \
		{ echo 'wheel: $(PYTHON) has no hatchling >= 1.12, and pip has no index to fetch it from: install it, as by apt-get install python3-hatchling, or name another Python by PYTHON='; exit 1; }

.PHONY: wheel
wheel: wheel-needs libmercer ## make the wheel of the Python package, with the library in it, in WHEELS=dist (needs cgo, a C compiler and Python with hatchling or an index)
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir '$(WHEELS)' $$($(INSTALLED) && echo --no-build-isolation) ./bindings/python
	@made=$$(ls -t '$(WHEELS)'/mercer_kernels-*.whl | head -n 1) && chmod 644 "$$made" && echo "$$made"

.PHONY: python-test
python-test: build libmercer-test ## test the C library and the Python package with scikit-learn (skips where that is absent)
	OPENBLAS_NUM_THREADS=1 $(PYTHON) -m unittest discover --buffer -s bindings/python/tests -t bindings/python

.PHONY: python-bench
python-bench: build libmercer ## time fits through Python beside those of the command
	$(PYTHON) bindings/python/bench_fit.py

.PHONY: pictures
pictures: ## run the commands of docs/guide and docs/learners.md; write their outputs and pictures
	$(GO) test -count=1 -run '^TestPages$$' ./cmd/mercer -args -update

.PHONY: demo
demo: build ## build, then fit and check models on the bundled data (writes ./demo)
	./bin/mercer demo --out demo

# GOGC=400 makes the garbage collector of the compiler and of the tests run less often; this saves
# about a fifth of the processor time. -vet=off: make vet also vets the tests, with more checks.
.PHONY: test
test: ## run the short tests: minutes, with nothing but Go installed
	GOGC=400 $(GO) test -vet=off -short -timeout 10m ./...

# JOBS targets of test-all run at a time, the longest first, because many of them use one thread.
# python-test includes libmercer-test.
JOBS ?= 2

.PHONY: test-all
test-all: ## run everything: full suites, other tiers and builds, all modules, fuzzing, benchmarks, C, Python
	@parts=; has() { command -v "$$1" >/dev/null; }; \
	if has gcc && has $(PYTHON); then parts='race python-test agree'; \
	elif has gcc; then parts='race libmercer-test'; fi; \
	if has qemu-aarch64; then parts="$$parts arm64"; else echo 'left out: arm64 needs qemu-aarch64'; fi; \
	if has g++; then parts="$$parts gpu-bundle-test $(INTERPRETED)"; else echo 'left out: the run of the GPU bundle on simulated CUDA libraries, and of the suite in the interpreter of PTX, needs g++'; fi; \
	has gcc || echo 'left out: the race detector and the C library need gcc'; \
	has gcc && has $(PYTHON) || echo 'left out: the Python package and the agreement with scikit-learn need gcc and $(PYTHON)'; \
	$(MAKE) --jobs=$(JOBS) $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) BENCHTIME=1x BENCHFLAGS=-short $$parts modules-test release-test tiers purego fuzz-smoke bench check-generated
	$(GO) test $(TESTFLAGS) -timeout 30m ./...

# Most tests open the best device. The target tiers runs these tests with AVX2 as the best tier, and
# purego runs them with the portable code, which is also the tier of a processor without AVX;
# MERCER_REQUIRE must not name a tier in these runs. It names "cases": these short tests then run more
# cases than those of make test. Tests that open devices by name cover all tiers in the full tests,
# so that NAMED skips their subtests, which are named after devices or tiers, and three tests whose
# results do not depend on the tier. The comparisons with other programs also run on AVX2, because
# their results depend on rounding. -vet=off: make vet has vetted each of these builds.
TIERED  := . ./backend ./gonum ./solvers/... ./learners/... $(addprefix ./internal/,adjoint evidence glm lsq neighbors online sparse svm)
# -skip uses the first alternative that matches the beginning of a name, so whole names come first.
NAMED   := ^Test(DefaultsAgainstScikitLearn|ParametersHaveAnEffect|NystromMemory)$$|/^(ref|cpu|avx2|generic)$$|//^(ref|cpu)$$|///^(ref|cpu)$$
PEERS   := 'Against(ScikitLearn|LIBSVM|Kernlab)'
BELOW   := MERCER_REQUIRE="$$(echo "$$MERCER_REQUIRE" | tr , '\n' | grep -v '^avx' | paste -sd, -)"

.PHONY: tiers
tiers: ## run the short tests, and the comparisons with other programs, with AVX2 as the best tier
	@if test -r /proc/cpuinfo && ! grep -qw avx512f /proc/cpuinfo; then \
		echo 'left out: tiers, because AVX2 is the best tier of this processor and all other tests use it'; \
	else \
		export GODEBUG=cpu.avx512f=off && \
		MERCER_REQUIRE=cases $(GO) test -vet=off -short -timeout 30m -skip '$(NAMED)' $(TIERED) ./cpu/... && \
		$(BELOW) $(GO) test -vet=off -timeout 30m -run $(PEERS) -skip '$(NAMED)' ./learners; \
	fi

.PHONY: modules-test
modules-test: ## vet and test the modules with large dependencies: gorgonia, beam
	cd gorgonia && $(GO) vet ./... && $(GO) test -vet=off ./...
	cd beam && $(GO) vet ./... && $(GO) test -vet=off ./...

# The race detector and the emulator of arm64 are slow. They run only the tests whose result they
# can change: tests in which goroutines share memory, and tests of arithmetic that the compiler of
# arm64 compiles differently. The suites of solvers and learners run on the best tier, because
# package ref starts no goroutine. The tests of this folder that start the go command, and the tests
# of readers in dataset without goroutines, are skipped.
CONCURRENT := ^TestReducedFactor|^TestGramOfIntegers|Conformance/.*/.*/(Concurrent|Threads|Cancel|Progress|Expansion|Large|Packed)|Concurrently|GOMAXPROCS|Workers|Goroutines
suites      = ^($(shell awk '/^func Test/ { name = $$2 } /$(1)[.]Run/ { print name }' $(2)/*_test.go | sed 's/[^A-Za-z0-9_].*//' | sort -u | paste -sd '|' -))$$
within      = $(1)/cpu//$(2)$$|$(1)//cpu//$(2)$$
SOLVERS    := $(call within,$(call suites,solvertest,solvers),/(SameBits|Progress|Canceled|Faults))
SOLVERS    := $(SOLVERS)|^Test(Path|CholeskyRefuses|.*(Bits|Repeats|Cancel|Progress|Interrupted))
LEARNERS   := $(call within,$(call suites,learnertest,learners),(Goroutines|Predictor|Canceled))|^Test(VarianceKeeps|Jackknife)

.PHONY: race
race: export MERCER_REQUIRE := $(MERCER_REQUIRE),cases
race: ## run the short tests in which goroutines share under the race detector (needs cgo and a C compiler)
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m ./backend ./bindings/c/internal/handles ./internal/atomicfile ./internal/run ./kernels/gram ./internal/glm ./internal/svm
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run '^(Example|Test(CrossValidation|Options|PredictRow|Rows|Samples|Solve|Tune))|Pieces|Stream|Concurrently' . ./dataset
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run '$(CONCURRENT)' ./cpu ./cuda
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run 'Conformance/.*/(Concurrent|Cancel|Progress)' ./backend/ref
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run '$(SOLVERS)' -skip '/^ref$$|//^ref$$' ./solvers
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run '$(LEARNERS)' ./learners
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run 'Devices|Repeats|KFoldScore|Refuses' ./learners/tuning
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run 'Interrupt|Progress' ./cmd/mercer

.PHONY: purego
purego: ## run the short tests without any assembly
	MERCER_REQUIRE=cases $(GO) test -vet=off -tags purego -short -timeout 30m ./cpu/internal/...
	MERCER_REQUIRE=cases $(GO) test -vet=off -tags purego -short -timeout 30m -run '$(EDGES)' ./cpu
	MERCER_REQUIRE=cases $(GO) test -vet=off -tags purego -short -timeout 30m -skip '$(NAMED)' $(TIERED)

# EDGES are the tests of every routine at the edges of its blocks, and gonum's BLAS test suite. The
# full tests also cover the portable tier, which is the only tier of a build without assembly.
EDGES := Conformance/.*/.*/(Gemm|Syrk|Trsm|Potrf|Gram|Packed|Expansion|NaN)|Blocking|RequiredTiers|GonumBLAS
ARM64 := $(EDGES)|^Test(Level2|Level3Exact|CholeskyExact|TriangleNotFinite|SymvRows|Trsv|BlockEdges|SmallCases)$$/neon

# COUNTED are tests of the counts of operations and bytes, which do not depend on the processor.
COUNTED := CannotEnd|CanBeStopped|BeyondMemory

# Compilers for arm64 fuse multiplications with additions, unless this flag is set. With the flag
# they print a line for each multiplication that they do not fuse.
UNFUSED := -gcflags=all=-d=fmahash=n

.PHONY: arm64
arm64: ## run the short tests of the kernels and the backend as arm64 under qemu-user
	MERCER_REQUIRE=neon,cases GOARCH=arm64 $(GO) test -vet=off -short -timeout 30m -exec qemu-aarch64 -skip '$(COUNTED)' ./kernels/... ./backend ./cpu/internal/...
	MERCER_REQUIRE=neon,cases GOARCH=arm64 $(GO) test -vet=off -short -timeout 30m -exec qemu-aarch64 -run '$(ARM64)' ./cpu
	@mkdir -p build/.unfused
	GOARCH=arm64 $(GO) test -c -vet=off $(UNFUSED) -o build/.unfused/learners ./learners >build/.unfused/log 2>&1 || { grep -v DISABLED build/.unfused/log; exit 1; }
	cd learners && MERCER_REQUIRE=unfused,cases qemu-aarch64 ../build/.unfused/learners -test.short -test.run '^TestSameBits$$/^cpu_neon'

.PHONY: generate
generate: ## write the generated assembly, the parameters of the Python estimators and docs/results.md anew
	cd tools && $(GO) run ./asmgen
	cd tools && $(GO) run ./pygen
	$(GO) generate ./internal/bench

.PHONY: check-generated
check-generated: ## fail if the generated assembly or Python differs from what its source makes
	cd tools && $(GO) test -count=1 ./...

# Only packages below cpu have files with the tag purego. For macOS, vet checks the
# packages with Go or assembly files that neither Linux on amd64 nor Windows compiles. The
# programs for 32 bits are compiled without optimization, because they are not run.
.PHONY: shape
shape: ## print the size and the surface of the code, and fail where one rises
	$(GO) test -short -count 1 -v -run TestShape .

.PHONY: vet
vet: ## gofmt, go vet and staticcheck, of Windows and macOS too; the packages compile for 32 bits
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt these files:" $$files; exit 1; }
	$(GO) vet ./... ./testdata
	$(GO) vet -tags purego ./cpu/...
	$(GO) vet -tags static ./cuda/... ./internal/bench/... ./cmd/...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cpu/internal/ukr ./cuda/internal/driver ./host ./internal/atomicfile ./internal/process
	GOARCH=386 $(GO) build -gcflags=all='-N -l' . ./cuda
	cd tools && $(GO) vet ./...
	$(GO) run $(STATICCHECK) ./... ./testdata
	$(GO) run $(STATICCHECK) -tags purego ./cpu/...
	cd tools && $(GO) run $(STATICCHECK) ./...

# having lists the folders of this module with a test file that declares a function named $(1)….
having = $(shell grep -rl --include='*_test.go' --exclude-dir=beam --exclude-dir=build --exclude-dir=gorgonia --exclude-dir=tools '^func $(1)' . | xargs -n 1 dirname | sort -u)

.PHONY: bench
bench: ## run the benchmarks: BENCH=regexp BENCHTIME=1s BENCHFLAGS=-short
	$(GO) test -vet=off $(BENCHFLAGS) -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) $(call having,Benchmark)

.PHONY: fuzz-smoke
fuzz-smoke: ## run every fuzz test for FUZZTIME=20000x inputs
	@set -e; for folder in $(call having,Fuzz); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$folder/*_test.go); do \
			echo "$$folder $$name"; \
			$(GO) test -vet=off -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$folder; \
		done; \
	done

.PHONY: accuracy
accuracy: ## reach the accuracies of bench/results/accuracy.md (minutes, 6 GiB, the larger data)
	MERCER_ACCURACY=all $(GO) test -count=1 -timeout 2h -v -run TestAccuracy ./cmd/mercer

PLANNER ?= build/planner.md

.PHONY: planner
planner: ## append the predicted and the measured times of all methods on 52 problems to PLANNER (minutes without other work, the larger data)
	mkdir -p '$(dir $(PLANNER))'
	MERCER_PLANNER='$(abspath $(PLANNER))' $(GO) test -count=1 -timeout 2h -v -run '^TestPlanner$$' ./solvers

.PHONY: trust
trust: ## measure the costs of bounds and of --reproducible into bench/results/trust.md (minutes without other work)
	MERCER_TRUST='$(abspath bench/results/trust.md)' $(GO) test -count=1 -timeout 2h -v -run '^TestTrustCost$$' ./learners

.PHONY: onnx
onnx: ## compare exported models with Mercer's predictions into bench/results/onnx.md (needs node and npm install --global onnxruntime-node)
	MERCER_REQUIRE=onnxruntime MERCER_ONNX='$(abspath bench/results/onnx.md)' $(GO) test -count=1 -run '^TestAgainstONNXRuntime$$' ./internal/onnx

.PHONY: accel-tests
accel-tests: libmercer ## run scikit-learn's own tests with mercer.accel into bench/results/accel-tests.md (minutes, needs python3-pytest)
	OPENBLAS_NUM_THREADS=1 $(PYTHON) bindings/python/accel_suite.py bench/results/accel-tests.md

.PHONY: accel-bench
accel-bench: libmercer ## time 24 programs for scikit-learn of two sizes with mercer.accel into bench/results/accel.md (20 minutes without other work)
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(PYTHON) bench/accel_sklearn.py

.PHONY: serve-bench
serve-bench: build ## time requests of one row to mercer serve and to FastAPI into bench/results/serve.md (two minutes without other work, needs wrk and python3-fastapi)
	cd tools && $(GO) build -o ../build/httpceiling ./httpceiling
	/usr/bin/python3 bench/serve_wrk.py

.PHONY: image-test
image-test: ## build the image of cmd/mercer/Dockerfile and serve in a container (needs root and buildah)
	MERCER_REQUIRE=buildah $(GO) test -count=1 -v -run '^TestImage$$' ./cmd/mercer

.PHONY: agree
agree: build ## compare kernel ridge with scikit-learn's (skips where that is absent)
	/usr/bin/python3 bench/agree_sklearn.py

BUNDLE ?= build/gpu
STRIPPED := -trimpath -ldflags='-s -w'

INTERPRETED ?= interpreted

.PHONY: interpreted
interpreted: ## run the whole suite of the CUDA backend with the shipped PTX in the interpreter (needs g++; 10 to 20 minutes)
	$(GO) test -vet=off -timeout 60m ./cuda -run TestInterpretedPTX -args -interpret-all

.PHONY: gpu-bundle
gpu-bundle: ## make build/gpu: tests and benchmarks for a machine with a GPU and no Go
	rm -rf '$(BUNDLE)' && mkdir -p '$(BUNDLE)'
	$(GO) build -tags nethttpomithttp2 $(STRIPPED) -o '$(BUNDLE)/mercer' ./cmd/mercer # no benchmark uses HTTP/2
	$(GO) test -c $(STRIPPED) -o '$(BUNDLE)/cuda.test' ./cuda
	$(GO) test -c $(STRIPPED) -o '$(BUNDLE)/driver.test' ./cuda/internal/driver
	gzip -9 '$(BUNDLE)/'*
	install -m 755 bench/gpubundle.sh '$(BUNDLE)/run'
	@test $$(du -sk '$(BUNDLE)' | cut -f 1) -le 24576 || { echo '$(BUNDLE) is larger than 24 MiB, which limits of uploads may not take'; exit 1; }
	@echo 'copy $(BUNDLE) to the machine with the GPU and call ./run there'

.PHONY: gpu-bundle-test
gpu-bundle-test: gpu-bundle ## run build/gpu, tiny, on simulated CUDA libraries (needs g++)
	rm -rf '$(BUNDLE)-test' && mkdir -p '$(BUNDLE)-test/libraries'
	$(GO) run ./cuda/cudatest/simulate '$(BUNDLE)-test/libraries'
	MERCER_CUDA_LIBDIR='$(abspath $(BUNDLE)-test/libraries)' '$(BUNDLE)/run' --size tiny --out '$(abspath $(BUNDLE)-test/results)'

DIST ?= dist

.PHONY: release
release: ## make DIST=dist anew: the archives of a release, their checksums, and the wheel where there are a C compiler and Python
	rm -rf '$(DIST)' && mkdir -p '$(DIST)'
	cd tools && $(GO) run ./release '$(abspath $(DIST))'
	@if command -v gcc >/dev/null && command -v $(PYTHON) >/dev/null; then \
		SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(MAKE) wheel WHEELS='$(abspath $(DIST))' || failed=yes; \
	else echo 'left out: the wheel needs gcc and $(PYTHON)'; fi; \
	(cd '$(DIST)' && chmod 644 * && sha256sum * >SHA256SUMS) || exit; \
	test -z "$$failed" || { echo 'release: $(DIST) has the archives and SHA256SUMS, and no wheel, for the reason above'; exit 1; }

# Two clones in different folders give one archive of each format. Go itself promises that the build
# cache does not change the output.
.PHONY: release-test
release-test: ## make the archives for Linux and Windows on amd64 of two clones of the last commit, and fail unless they are equal byte for byte
	rm -rf build/.release && mkdir -p build/.release/1 build/.release/2
	git clone --quiet . build/.release/clone && git clone --quiet . build/.release/other/folder/clone
	cd build/.release/clone/tools && $(GO) run ./release '$(abspath build/.release/1)' linux/amd64 windows/amd64
	cd build/.release/other/folder/clone/tools && $(GO) run ./release '$(abspath build/.release/2)' linux/amd64 windows/amd64
	diff -r build/.release/1 build/.release/2
	rm -rf build/.release

MODULE := github.com/mercer-go/mercer

# The tags of the modules beam and gorgonia name a commit outside the branch. In this commit the two
# modules require Mercer VERSION and have no replace directive, as go install demands. go get reads
# Mercer from this repository, which has the tag already.
.PHONY: tag
tag: ## tag the last commit VERSION=v1.2.3, with the modules beam and gorgonia
	@grep -q '^## $(VERSION)$$' CHANGELOG.md || { echo 'tag: CHANGELOG.md has no heading "## $(VERSION)"'; exit 1; }
	@grep -q '^version = "$(patsubst v%,%,$(VERSION))"$$' bindings/python/pyproject.toml || { echo 'tag: the version in bindings/python/pyproject.toml is not that of $(VERSION)'; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo 'tag: the checkout differs from its commit: commit or stash the changes'; exit 1; }
	git tag -a -m 'Mercer $(VERSION)' '$(VERSION)'
	rm -rf build/.tag && git worktree prune && git worktree add --quiet --detach build/.tag
	@set -e; for module in beam gorgonia; do \
		(cd build/.tag/$$module && $(GO) mod edit -dropreplace=$(MODULE) && \
			GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0='url.$(CURDIR).insteadOf' GIT_CONFIG_VALUE_0='https://$(MODULE)' \
			GONOPROXY=$(MODULE) GONOSUMDB=$(MODULE) GOWORK=off $(GO) get $(MODULE)@$(VERSION)); \
	done
	git -C build/.tag commit --quiet --all --message 'beam, gorgonia: require Mercer $(VERSION)'
	git -C build/.tag tag -a -m 'beam $(VERSION)' 'beam/$(VERSION)'
	git -C build/.tag tag -a -m 'gorgonia $(VERSION)' 'gorgonia/$(VERSION)'
	git worktree remove build/.tag
	@echo 'publish with: git push origin $(VERSION) beam/$(VERSION) gorgonia/$(VERSION)'

.PHONY: beam
beam: ## build bin/mercer-beam, fits over Apache Beam (a module of its own, minutes the first time)
	cd beam && $(GO) build -o ../bin/mercer-beam ./cmd/mercer-beam

.PHONY: beam-test
beam-test: ## vet and test the module beam
	cd beam && $(GO) vet ./... && $(GO) test ./...
