package main

import "github.com/spf13/cobra"

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check configuration",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := readChecked()
			return err
		},
	}
}
