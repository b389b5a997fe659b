package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sagernet/sing-box/option"
	"github.com/sagernet/sing/common/json/badoption"
	"github.com/sagernet/sing/common/rw"
	"github.com/spf13/cobra"
)

func mergeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "merge <output-path>",
		Short: "Merge configurations",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return merge(arguments[0])
		},
	}
}

func merge(output string) error {
	options, err := readOptions()
	if err != nil {
		return err
	}
	for _, inbound := range options.Inbounds {
		if wrapper, hasTLS := inbound.Options.(option.InboundTLSOptionsWrapper); hasTLS {
			if tls := wrapper.TakeInboundTLSOptions(); tls != nil {
				inlineFile(tls.CertificatePath, &tls.Certificate)
				inlineFile(tls.KeyPath, &tls.Key)
				if tls.ECH != nil {
					inlineFile(tls.ECH.KeyPath, &tls.ECH.Key)
				}
				wrapper.ReplaceInboundTLSOptions(tls)
			}
		}
	}
	for _, outbound := range options.Outbounds {
		if ssh, isSSH := outbound.Options.(*option.SSHOutboundOptions); isSSH {
			inlineFile(os.ExpandEnv(ssh.PrivateKeyPath), &ssh.PrivateKey)
		}
		if wrapper, hasTLS := outbound.Options.(option.OutboundTLSOptionsWrapper); hasTLS {
			if tls := wrapper.TakeOutboundTLSOptions(); tls != nil {
				inlineFile(tls.CertificatePath, &tls.Certificate)
				if tls.ECH != nil {
					inlineFile(tls.ECH.ConfigPath, &tls.ECH.Config)
				}
				wrapper.ReplaceOutboundTLSOptions(tls)
			}
		}
	}
	merged, err := encode(options)
	if err != nil {
		return err
	}
	if err = rw.MkdirParent(output); err != nil {
		return err
	}
	if err = os.WriteFile(output, merged, 0o644); err != nil {
		return err
	}
	path, _ := filepath.Abs(output)
	fmt.Fprintln(os.Stderr, path)
	return nil
}

// inlineFile puts the lines of a file into the configuration, so that one file is enough to move it. A file that cannot
// be read stays named.
func inlineFile(path string, lines *badoption.Listable[string]) {
	if path == "" {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return
	}
	*lines = nil
	for line := range strings.Lines(string(content)) {
		if strings.TrimSpace(line) != "" {
			*lines = append(*lines, strings.TrimRight(line, "\r\n"))
		}
	}
}
