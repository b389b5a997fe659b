package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tarazu/option"

	"github.com/sagernet/sing-box"
	"github.com/sagernet/sing-box/log"
	boxOption "github.com/sagernet/sing-box/option"
	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/common/json"
	"github.com/sagernet/sing/common/json/badjson"
	"github.com/sagernet/sing/service"
)

// source is one configuration file.
type source struct {
	path    string
	content []byte
	options option.Options
}

// stdin is read once, so that a reload finds it again.
var stdin = sync.OnceValues(func() ([]byte, error) {
	return io.ReadAll(os.Stdin)
})

func readSource(path string) (source, error) {
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if path == "stdin" {
		read = stdin
	}
	content, err := read()
	if err != nil {
		return source{}, E.Cause(err, "read config at ", path)
	}
	options, err := json.UnmarshalExtendedContext[option.Options](global.context, content)
	if err != nil {
		return source{}, E.Cause(err, "decode config at ", path)
	}
	return source{path, content, options}, nil
}

// readSources reads the files that the flags name, in the order of their paths.
func readSources() ([]source, error) {
	paths := slices.Clone(global.configs)
	for _, directory := range global.directories {
		entries, err := os.ReadDir(directory)
		if err != nil {
			return nil, E.Cause(err, "read config directory at ", directory)
		}
		for _, entry := range entries {
			if !entry.IsDir() && strings.HasSuffix(entry.Name(), ".json") {
				paths = append(paths, filepath.Join(directory, entry.Name()))
			}
		}
	}
	slices.Sort(paths)
	sources := make([]source, len(paths))
	for i, path := range paths {
		var err error
		if sources[i], err = readSource(path); err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// readOptions reads all files as one configuration.
func readOptions() (option.Options, error) {
	sources, err := readSources()
	if err != nil {
		return option.Options{}, err
	}
	if len(sources) == 1 {
		return sources[0].options, nil
	}
	var merged json.RawMessage
	for _, it := range sources {
		merged, err = badjson.MergeJSON(global.context, it.options.RawMessage, merged, false)
		if err != nil {
			return option.Options{}, E.Cause(err, "merge config at ", it.path)
		}
	}
	var options option.Options
	if err = options.UnmarshalJSONContext(global.context, merged); err != nil {
		return option.Options{}, E.Cause(err, "decode merged config")
	}
	return options, nil
}

// readValid reads the configuration and tells its warnings.
func readValid() (option.Options, error) {
	options, err := readOptions()
	if err != nil {
		return option.Options{}, err
	}
	warnings, err := options.Validate()
	if err != nil {
		return option.Options{}, err
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return options, nil
}

// readChecked is readValid, and makes sure that a box can be built from it.
func readChecked() (option.Options, error) {
	options, err := readValid()
	if err != nil {
		return option.Options{}, err
	}
	instance, cancel, err := build(options)
	if err != nil {
		return option.Options{}, err
	}
	defer cancel()
	return options, instance.Close()
}

// build makes a box and starts nothing. cancel ends what belongs to its context.
func build(options option.Options) (*box.Box, context.CancelFunc, error) {
	built := options.Box()
	if global.disableColor {
		var colorless boxOption.LogOptions
		if built.Log != nil {
			colorless = *built.Log
		}
		colorless.DisableColor = true
		built.Log = &colorless
	}
	ctx, cancel := context.WithCancel(service.ExtendContext(global.context))
	instance, err := box.New(box.Options{
		Context:                    ctx,
		Options:                    built,
		NetworkNamespaceHolderArgs: []string{"/proc/self/exe", netnsHolder},
	})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return instance, cancel, nil
}

// encode writes options as people read them.
func encode(options option.Options) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(options); err != nil {
		return nil, E.Cause(err, "encode config")
	}
	return buffer.Bytes(), nil
}
