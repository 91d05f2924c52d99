#!/bin/sh
# Starts the program of the installed unit, as its user, with its environment file and no capability, and stays until that ends.
set -e
unit=/usr/lib/systemd/system/quantd.service
setting() { sed -n "s/^$1=//p" "$unit"; }

user=$(setting User)
mkdir -p "/run/$(setting RuntimeDirectory)"
chown "$user:$(setting Group)" "/run/$(setting RuntimeDirectory)"
set -a
# shellcheck source=/dev/null
. "$(setting EnvironmentFile | sed 's/^-//')"
set +a
# shellcheck disable=SC2046  # a command and its arguments
exec setpriv --reuid="$user" --regid="$(setting Group)" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all $(setting ExecStart)
