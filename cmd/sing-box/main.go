// Command sing-box is sing-box with a load balancer: the commands and flags of sing-box, the configuration with the
// `balancer` outbound and the monitor.
package main

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"time"

	"tarazu/include"

	"github.com/sagernet/sing-box/experimental/deprecated"
	"github.com/sagernet/sing-box/log"
	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/service"
	"github.com/sagernet/sing/service/filemanager"
	"github.com/spf13/cobra"
)

// global is what the flags of every command come to.
var global struct {
	context      context.Context
	configs      []string
	directories  []string
	directory    string
	disableColor bool
}

func main() {
	root := &cobra.Command{
		Use:           "sing-box",
		Short:         "sing-box with a load balancer",
		SilenceErrors: true, // told once, below
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return prepare()
		},
	}
	flags := root.PersistentFlags()
	flags.StringArrayVarP(&global.configs, "config", "c", nil, "set configuration file path")
	flags.StringArrayVarP(&global.directories, "config-directory", "C", nil, "set configuration directory path")
	flags.StringVarP(&global.directory, "directory", "D", "", "set working directory")
	flags.BoolVarP(&global.disableColor, "disable-color", "", false, "disable color output")
	root.AddCommand(runCommand(), checkCommand(), formatCommand(), mergeCommand(), versionCommand(), netnsHolderCommand())
	if err := root.Execute(); err != nil {
		log.Fatal(err)
	}
}

// prepare applies the global flags before a command runs.
func prepare() error {
	if global.disableColor {
		factory := log.NewDefaultFactory(context.Background(), log.Formatter{BaseTime: time.Now(), DisableColors: true}, os.Stderr, "", nil, false)
		if err := factory.Start(); err != nil {
			return err
		}
		log.SetStdLogger(factory.Logger())
	}
	global.context = asSudoUser(context.Background())
	if global.directory != "" {
		if _, err := os.Stat(global.directory); err != nil {
			if err = filemanager.MkdirAll(global.context, global.directory, 0o777); err != nil {
				return E.Cause(err, "create working directory")
			}
		}
		if err := os.Chdir(global.directory); err != nil {
			return E.Cause(err, "change to working directory")
		}
	}
	if len(global.configs) == 0 && len(global.directories) == 0 {
		global.configs = []string{"config.json"}
	}
	global.context = include.Context(service.ContextWith(global.context, deprecated.NewStderrManager(log.StdLogger())))
	return nil
}

// asSudoUser has files that sing-box writes belong to who called sudo, not to root.
func asSudoUser(ctx context.Context) context.Context {
	uid, _ := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, _ := strconv.Atoi(os.Getenv("SUDO_GID"))
	if caller := os.Getenv("SUDO_USER"); caller != "" && uid == 0 && gid == 0 {
		if account, err := user.Lookup(caller); err == nil {
			uid, _ = strconv.Atoi(account.Uid)
			gid, _ = strconv.Atoi(account.Gid)
		}
	}
	if uid == 0 || gid == 0 {
		return ctx
	}
	return filemanager.WithDefault(ctx, "", "", uid, gid)
}
