package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/common/json/badjson"
	"github.com/spf13/cobra"
)

func formatCommand() *cobra.Command {
	var write bool
	command := &cobra.Command{
		Use:   "format",
		Short: "Format configuration",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return format(write)
		},
	}
	command.Flags().BoolVarP(&write, "write", "w", false, "write result to (source) file instead of stdout")
	return command
}

func format(write bool) error {
	sources, err := readSources()
	if err != nil {
		return err
	}
	for _, it := range sources {
		comments := it.options.Comments()
		options, err := badjson.Omitempty(global.context, it.options)
		if err != nil {
			return err
		}
		options.SetComments(comments)
		formatted, err := encode(options)
		if err != nil {
			return err
		}
		path, _ := filepath.Abs(it.path)
		switch {
		case !write || it.path == "stdin":
			if len(sources) > 1 {
				fmt.Println(path)
			}
			fmt.Println(string(formatted))
		case !bytes.Equal(it.content, formatted):
			if err = os.WriteFile(it.path, formatted, 0o644); err != nil {
				return E.Cause(err, "write output")
			}
			fmt.Fprintln(os.Stderr, path)
		}
	}
	return nil
}
