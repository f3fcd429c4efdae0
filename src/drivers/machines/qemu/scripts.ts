/**
 * Scripts for the shell of the guest. They are the same for every call: what they work on comes as arguments, never as a part of
 * their text.
 */

/** Line after an input. Without it the input broke off on its way, and nothing is done with it. */
export const END = '# end';

/**
 * Arguments: `absent PATH`, `directory PATH` (mode 0700) and `file PATH BYTES`, as often as there are some; the input is the texts of the
 * files, one after the other, and the line above. Each file is replaced as a whole, with mode 0600, and its directory made; none is
 * when one of them did not come through.
 */
export const ARRANGE_SCRIPT = `set -eu
umask 077
each() {
  move=$1
  shift
  while [ $# -gt 0 ]; do
    case $1 in
    file)
      if [ "$move" = yes ]; then mv -f -- "$2.new" "$2"; else place "$2" "$3"; fi
      shift 3
      ;;
    absent)
      if [ "$move" = no ]; then rm -rf --one-file-system -- "$2"; fi
      shift 2
      ;;
    directory)
      if [ "$move" = no ]; then install -d -m 700 -- "$2"; fi
      shift 2
      ;;
    esac
  done
}
place() {
  [ -d "\${1%/*}" ] || mkdir -p -- "\${1%/*}"
  head -c "$2" > "$1.new"
}
each no "$@"
IFS= read -r end || end=
[ "$end" = '${END}' ] || { echo 'the texts broke off' >&2; exit 1; }
each yes "$@"
`;

/** `$1`: a file. Makes the directories above it, and prints the topmost that was missing. */
export const WAY_SCRIPT = `set -eu
umask 077
at=$(dirname -- "$1")
top=
while [ ! -d "$at" ]; do top=$at; at=$(dirname -- "$at"); done
mkdir -p -- "$(dirname -- "$1")"
printf '%s' "$top"
`;

/** `$1`: a file, `$2`: the topmost directory that goes. Status 1 when one of them holds something. */
export const REMOVE_WAY_SCRIPT = `set -u
at=$(dirname -- "$1")
while :; do
  case $at/ in "$2"/*) ;; *) break ;; esac
  if [ -d "$at" ]; then rmdir -- "$at" 2>/dev/null || exit 1; fi
  at=$(dirname -- "$at")
done
`;

/**
 * `$1`: unit, `$2`: file for its environment, which is the input, `$3`: log, begun anew at 10 MiB; then the program. Nothing happens while
 * it runs already. \`KillMode=process\`: what the program started is its own affair, as on any other machine. A unit that has failed stays,
 * so that it is found.
 */
export const START_SCRIPT = `set -eu
umask 077
unit=$1 environment=$2 log=$3
shift 3
case $(systemctl show --property=LoadState,MainPID "$unit") in
*MainPID=[1-9]*) exit 0 ;;
*LoadState=not-found*) ;;
*)
  systemctl stop "$unit" 2>/dev/null || true
  systemctl reset-failed "$unit" 2>/dev/null || true
  ;;
esac
mkdir -p -- "\${environment%/*}" "\${log%/*}"
text=$(cat)
case $text in *'${END}') ;; *) echo 'the environment broke off' >&2; exit 1 ;; esac
printf '%s\\n' "$text" > "$environment"
if [ -n "$(find "$log" -size +10485760c 2>/dev/null)" ]; then mv -f -- "$log" "$log.1"; fi
exec systemd-run --quiet --unit="$unit" --service-type=exec --remain-after-exit \\
  --property=EnvironmentFile="$environment" --property=Delegate=yes --property=KillMode=process \\
  --property=TimeoutStopSec=45 --property=LimitNOFILE=1048576 --property=TasksMax=infinity \\
  --property=StandardOutput=append:"$log" --property=StandardError=append:"$log" -- "$@"
`;

/**
 * `$1`: unit, `$2`: file of its environment, `$3`: seconds that the program has to end. systemd takes no other time for a unit that
 * is there, so it is asked, not waited for longer, and then the program is killed.
 */
export const STOP_SCRIPT = `set -u
unit=$1 environment=$2 grace=$3
timeout "$grace" systemctl stop "$unit" 2>/dev/null
if [ $? -eq 124 ]; then
  systemctl kill --kill-who=main --signal=KILL "$unit" 2>/dev/null
  systemctl stop "$unit" 2>/dev/null
fi
systemctl reset-failed "$unit" 2>/dev/null
rm -f -- "$environment"
case $(systemctl show --property=ActiveState --value "$unit") in inactive | failed) exit 0 ;; *) exit 1 ;; esac
`;

/** `$1`: a socket, `$2`: the place where programs of the guest look for it. */
export const LINK_SCRIPT = `set -eu
mkdir -p -- "$(dirname -- "$2")"
ln -sfn -- "$1" "$2"
`;

/** Functions of the two below. Arguments: socket of containerd, its state, control group, directories. */
const AREA = `set -u
socket=$1 state=$2 cgroup=$3
shift 3
within() { for each in "$@"; do [ "$each" = "$path" ] && return 0; case $path in "$each"/*) return 0 ;; esac; done; return 1; }
shims() {
  # One program for all processes: starting programs is what a guest without the help of a processor is slow at.
  grep -las containerd-shim /proc/[0-9]*/cmdline | while read -r entry; do
    words=$( { tr '\\0' ' ' < "$entry"; } 2>/dev/null) || continue
    case $words in *containerd-shim*" -address $socket "*) pid=\${entry#/proc/}; printf '%s\\n' "\${pid%/cmdline}" ;; esac
  done
}
members() {
  [ -n "$cgroup" ] && [ -d "/sys/fs/cgroup$cgroup" ] || return 0
  find "/sys/fs/cgroup$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null
}
mounts() {
  awk '{print $5}' /proc/self/mountinfo | while read -r raw; do
    case $raw in *\\\\*) path=$(printf '%b' "$raw") ;; *) path=$raw ;; esac
    within "$@" && printf '%s\\n' "$path"
  done
}
`;

/** One line for each process and mount that an engine left. */
export const LEFTOVERS_SCRIPT = `${AREA}
for pid in $(shims; members); do printf 'process %s (%s)\\n' "$pid" "$(tr '\\0' ' ' < /proc/$pid/cmdline | cut -d' ' -f1)"; done
mounts "$@" | sed 's/^/mount /'
`;

/** Ends and unmounts them. */
export const CLEAR_SCRIPT = `${AREA}
tries=0
while left=$(shims; members); [ -n "$left" ]; do
  kill -KILL $left 2>/dev/null
  tries=$((tries + 1))
  [ "$tries" -gt 100 ] && { echo "processes of containers cannot be ended: $left" >&2; exit 1; }
  sleep 0.1
done
mounts "$@" | tac | while read -r point; do umount -- "$point" 2>/dev/null || umount --lazy -- "$point"; done
rm -rf --one-file-system -- "$state"
if [ -n "$cgroup" ] && [ -d "/sys/fs/cgroup$cgroup" ]; then find "/sys/fs/cgroup$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; fi
exit 0
`;
