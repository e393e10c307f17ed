package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// stdinName stands for standard input among files.
const stdinName = "-"

// fileFlags is policy documents that a command reads.
type fileFlags struct{ paths []string }

func (f *fileFlags) add(cmd *cobra.Command) {
	f.define(cmd.Flags())
	// The flag is defined above, and completed once.
	_ = cmd.MarkFlagRequired("file")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
}

func (f *fileFlags) define(set *pflag.FlagSet) {
	set.StringArrayVarP(&f.paths, "file", "f", nil,
		"policy `file`, or directory of them, or - for standard input; may be repeated")
}

// filesAreFlags refuses arguments, as all commands that read documents do.
func filesAreFlags(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("files are named with -f: -f %s", args[0])
	}
	return nil
}

// documents is what was read from files: all policies, or every fault.
type documents struct {
	policies []*ratelimit.Policy
	warnings []string
}

// read reads all files. The error joins every fault of every file.
func (f *fileFlags) read(stdin io.Reader) (documents, error) {
	var docs documents
	var faults []error
	places := make(map[[2]string]string)
	for _, path := range f.paths {
		files, err := policyFiles(path)
		if err != nil {
			return docs, err
		}
		for _, file := range files {
			found, err := docs.readFile(stdin, file)
			faults = append(faults, err)
			for _, p := range found {
				name := [2]string{p.Function, p.Version}
				if first, twice := places[name]; twice && first != file {
					faults = append(faults, fmt.Errorf("%s: function %q version %q is in %s too", file, p.Function, p.Version, first))
				}
				places[name] = file
			}
		}
	}
	return docs, errors.Join(faults...)
}

// readFile reads one file and returns the policies it holds.
func (d *documents) readFile(stdin io.Reader, file string) ([]*ratelimit.Policy, error) {
	data, err := readBounded(stdin, file)
	if err != nil {
		return nil, err
	}
	found, warnings, err := policy.Parse(data)
	d.policies = append(d.policies, found...)
	for _, w := range warnings {
		d.warnings = append(d.warnings, place(file, w.Line)+": "+lead(w.Path)+w.Reason)
	}
	var faults []error
	for _, f := range policy.Faults(err) {
		faults = append(faults, errors.New(place(file, f.Line)+": "+lead(f.Path)+value(f.Value)+f.Reason))
	}
	return found, errors.Join(faults...)
}

// readBounded reads a file that may hold policies, but not one that is larger
// than any that does.
func readBounded(stdin io.Reader, file string) ([]byte, error) {
	from := stdin
	if file != stdinName {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	data, err := io.ReadAll(io.LimitReader(from, policy.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > policy.MaxBytes {
		return nil, fmt.Errorf("%s: is larger than %d bytes", file, policy.MaxBytes)
	}
	return data, nil
}

// policyFiles is the file itself, or those of a directory that a node would
// read.
func policyFiles(path string) ([]string, error) {
	if path == stdinName {
		return []string{stdinName}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		ending := filepath.Ext(e.Name())
		if slices.Contains([]string{".yaml", ".yml", ".json"}, ending) && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: holds no *.yaml, *.yml or *.json file", path)
	}
	return files, nil
}

func place(file string, line int) string {
	if file == stdinName {
		file = "standard input"
	}
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func lead(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func value(v string) string {
	if v == "" {
		return ""
	}
	return fmt.Sprintf("%q ", v)
}
