// Command release makes the archives of a release: the command mercer for each platform, with the
// licenses of all linked code and a software bill of materials. The archives are reproducible: the
// same commit and the same version of Go give the same bytes.
//
//	cd tools && go run ./release FOLDER [GOOS/GOARCH...]     archives for all platforms, or for the given ones
//	cd tools && go run ./release -licenses FILE PACKAGE      the licenses of what a package links, with cgo
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// A build is an executable of the command for one platform. For Linux there is a second one, for containers, that
// needs no dynamic loader.
type build struct {
	goos, goarch string
	static       bool
}

var builds = []build{
	{"linux", "amd64", false}, {"linux", "amd64", true},
	{"linux", "arm64", false}, {"linux", "arm64", true},
	{"darwin", "amd64", false}, {"darwin", "arm64", false},
	{"windows", "amd64", false},
}

const command = "./cmd/mercer"

func main() {
	err := errors.New("usage: release FOLDER [GOOS/GOARCH...], or release -licenses FILE PACKAGE")
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "-licenses":
		var text []byte
		if text, err = licenses(args[2], append(os.Environ(), "CGO_ENABLED=1")); err == nil {
			err = os.WriteFile(args[1], text, 0o644)
		}
	case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		err = release(args[0], args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(folder string, platforms []string) error {
	for _, p := range platforms {
		if !slices.ContainsFunc(builds, func(b build) bool { return p == b.goos+"/"+b.goarch }) {
			return fmt.Errorf("there are no archives for %s", p)
		}
	}
	work, err := os.MkdirTemp("", "mercer-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, b := range builds {
		if len(platforms) == 0 || slices.Contains(platforms, b.goos+"/"+b.goarch) {
			if err := b.archive(folder, work); err != nil {
				return fmt.Errorf("%s/%s: %w", b.goos, b.goarch, err)
			}
		}
	}
	return nil
}

// environment returns the environment of go build, without this machine's own build settings.
func (b build) environment() []string {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS="+b.goos, "GOARCH="+b.goarch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOWORK=off", "GOFLAGS=")
	if b.static {
		env = append(env, "GOFLAGS=-tags=static")
	}
	return env
}

// unfused keeps the compiler for arm64 from fusing multiplications with additions, for --reproducible. With this
// flag the compiler prints a line with the word DISABLED for each unfused multiplication.
const unfused = "-gcflags=all=-d=fmahash=n"

// archive builds the command in the folder work and writes its archive to folder.
func (b build) archive(folder, work string) error {
	program := filepath.Join(work, "mercer")
	arguments := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program}
	if b.goarch == "arm64" {
		arguments = append(arguments, unfused)
	}
	cmd := exec.Command("go", append(arguments, command)...)
	var printed bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = "..", b.environment(), &printed
	if err := cmd.Run(); err != nil {
		for line := range strings.Lines(printed.String()) {
			if !strings.Contains(line, "DISABLED") {
				fmt.Fprint(os.Stderr, line)
			}
		}
		return fmt.Errorf("%v: %w", cmd, err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	created, err := time.Parse(time.RFC3339, settings["vcs.time"])
	if err != nil {
		return fmt.Errorf("go build did not record a commit: build in a clone of the repository, not in a linked worktree: %w", err)
	}
	if settings["vcs.modified"] == "true" {
		return errors.New("the checkout differs from its commit: commit or stash the changes (git status lists them)")
	}
	name := fmt.Sprintf("mercer_%s_%s_%s", strings.TrimPrefix(info.Main.Version, "v"), b.goos, b.goarch)
	if b.static {
		name += "_static"
	}
	files := []file{{name: "mercer", mode: 0o755}}
	if b.goos == "windows" {
		files[0].name += ".exe"
	}
	if files[0].data, err = os.ReadFile(program); err != nil {
		return err
	}
	for _, f := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		data, err := os.ReadFile(filepath.Join("..", f))
		if err != nil {
			return err
		}
		files = append(files, file{name: f, data: data, mode: 0o644})
	}
	texts, err := licenses(command, b.environment())
	if err != nil {
		return err
	}
	materials, err := bill(info, created)
	if err != nil {
		return err
	}
	files = append(files, file{"LICENSES.txt", texts, 0o644}, file{"mercer.cdx.json", materials, 0o644})
	if b.goos != "windows" {
		pages, err := manual(filepath.Join(work, "man"), created)
		if err != nil {
			return err
		}
		files = append(files, pages...)
	}
	var packed bytes.Buffer
	pack, ending := tarred, ".tar.gz"
	if b.goos == "windows" {
		pack, ending = zipped, ".zip"
	}
	if err := pack(&packed, name, created, files); err != nil {
		return err
	}
	fmt.Println(name + ending)
	return os.WriteFile(filepath.Join(folder, name+ending), packed.Bytes(), 0o644)
}

// manual returns the command's manual pages, which TestManPages of cmd/mercer writes.
func manual(folder string, created time.Time) ([]file, error) {
	if _, err := os.Stat(folder); err != nil {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, err
		}
		cmd := exec.Command("go", "test", "-count=1", "-run=^TestManPages$", command)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "..", os.Stderr, os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "MERCER_MAN="+folder, fmt.Sprint("SOURCE_DATE_EPOCH=", created.Unix()))
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%v: %w", cmd, err)
		}
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err == nil && len(paths) == 0 {
		err = errors.New("no manual page was written")
	}
	var pages []file
	for _, path := range paths {
		data, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		pages = append(pages, file{"man/man1/" + filepath.Base(path), data, 0o644})
	}
	return pages, err
}

// A file is a file of an archive, with its path in the archive.
type file struct {
	name string
	data []byte
	mode fs.FileMode
}

func tarred(w io.Writer, folder string, created time.Time, files []file) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: created, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func zipped(w io.Writer, folder string, created time.Time, files []file) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		header := zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: created.UTC()}
		header.SetMode(f.mode)
		entry, err := archive.CreateHeader(&header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// bill returns the bill of materials in CycloneDX format: the modules that the executable records, with their
// checksums from go.sum, and Go's standard library.
func bill(info *buildinfo.BuildInfo, created time.Time) ([]byte, error) {
	component := func(kind cyclonedx.ComponentType, path, version, sum string) cyclonedx.Component {
		url := "pkg:golang/" + path + "@" + version
		c := cyclonedx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url}
		if sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: sum}}
		}
		return c
	}
	main := component(cyclonedx.ComponentTypeApplication, info.Main.Path, info.Main.Version, "")
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s, which no release may contain", m.Path, m.Replace.Path)
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version, m.Sum))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: created.UTC().Format(time.RFC3339), Component: &main}
	bom.Components = &components
	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return text.Bytes(), err
}

// licenseName matches the names of license files and of folders with licenses.
var licenseName = regexp.MustCompile(`(?i)^(third[-_]party[-_])?(licen[cs]es?|copying|copyright|notice|patents)([-_.].*)?$`)

// licenses returns every license, notice and patent grant in the folders of the packages linked into a package, and
// in the parent folders within their modules. A package without a license is an error.
func licenses(path string, env []string) ([]byte, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", path)
	cmd.Dir, cmd.Env, cmd.Stderr = "..", env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd, err)
	}
	texts := map[string]string{} // keyed by "module version: file"
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct{ Path, Version, Dir string }
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		name, root := "Go's standard library, "+runtime.Version(), ""
		switch {
		case p.Module != nil:
			name, root = strings.TrimSpace(p.Module.Path+" "+p.Module.Version), p.Module.Dir
		case p.Standard:
			prefix, _, found := strings.Cut(filepath.ToSlash(p.Dir), "/src/")
			if !found {
				return nil, fmt.Errorf("%s is not in Go's folder src", p.Dir)
			}
			root = filepath.FromSlash(prefix)
		}
		hasLicense := false
		for folder := p.Dir; ; folder = filepath.Dir(folder) {
			entries, err := os.ReadDir(folder)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if !licenseName.MatchString(e.Name()) {
					continue
				}
				err := filepath.WalkDir(filepath.Join(folder, e.Name()), func(path string, e fs.DirEntry, err error) error {
					if err != nil || e.IsDir() || filepath.Ext(path) == ".go" {
						return err
					}
					text, err := os.ReadFile(path)
					if err != nil {
						return err
					}
					inside, err := filepath.Rel(root, path)
					texts[name+": "+filepath.ToSlash(inside)] = strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
					hasLicense = true
					return err
				})
				if err != nil {
					return nil, err
				}
			}
			if folder == root || folder == filepath.Dir(folder) {
				break
			}
		}
		if !hasLicense {
			return nil, fmt.Errorf("%s has no file with its license", name)
		}
	}
	var combined bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&combined, "%s\n%s\n%s\n\n\n", name, strings.Repeat("=", len(name)), texts[name])
	}
	return combined.Bytes(), nil
}
