package main

import (
	"github.com/sagernet/sing-box/common/netns"
	"github.com/spf13/cobra"
)

// netnsHolder is the command by which sing-box keeps a network namespace of `network_namespaces` open.
const netnsHolder = "netns-holder"

func netnsHolderCommand() *cobra.Command {
	return &cobra.Command{
		Use:    netnsHolder,
		Args:   cobra.NoArgs,
		Hidden: true,
		Run: func(*cobra.Command, []string) {
			netns.Hold()
		},
	}
}
