/** Guest shell scripts. Their text is constant; all input is passed as arguments. */

/** Terminator after an input. Without it the input was truncated and is discarded. */
export const END = '# end';

/** Exit status of `PLACE_SCRIPT` when a program is missing. */
export const MISSING = 3;

/** Directory of systemd's transient units. */
const UNITS = '/run/systemd/transient';

/**
 * Arguments, repeatable: `absent PATH`, `directory PATH` (mode 0700), `file PATH BYTES`, and `program UNIT ENVIRONMENT LOG READY COUNT`
 * followed by COUNT words of the program. Standard input holds the file contents in order, then `END`. Each file is replaced
 * atomically, with mode 0600, and its directory created. If any file is incomplete, none is replaced and no program starts.
 *
 * All programs start at once; running ones are left alone. `READY`: seconds to wait for a readiness notification, 0 for a program that
 * sends none. When one fails, the script stops waiting for the others; the failed or starting unit remains for inspection. Status 3: the
 * program is missing in the guest. `KillMode=process`: child processes survive, as on any other machine. A log restarts at 10 MiB.
 */
export const PLACE_SCRIPT = `set -eu
umask 077
each() {
  pass=$1
  shift
  while [ $# -gt 0 ]; do
    case $1 in
    file)
      case $pass in
      text) place "$2" "$3" ;;
      name) mv -f -- "$2.new" "$2" ;;
      esac
      shift 3
      ;;
    absent)
      if [ "$pass" = text ]; then rm -rf --one-file-system -- "$2"; fi
      shift 2
      ;;
    directory)
      if [ "$pass" = text ]; then install -d -m 700 -- "$2"; fi
      shift 2
      ;;
    program)
      if [ "$pass" = start ]; then
        begin "$@" &
        begun="$begun $!:$5:$2"
      fi
      shift "$((6 + $6))"
      ;;
    esac
  done
}
place() {
  [ -d "\${1%/*}" ] || mkdir -p -- "\${1%/*}"
  head -c "$2" > "$1.new"
}
begin() {
  unit=$2 environment=$3 log=$4 ready=$5 count=$6
  shift 6
  # Its words go to the end, and what came after them goes.
  turned=0
  while [ "$turned" -lt "$count" ]; do
    set -- "$@" "$1"
    shift
    turned=$((turned + 1))
  done
  shift "$(($# - count))"
  command -v -- "$1" > /dev/null || { printf '%s' "$1" >&2; exit ${MISSING}; }
  if [ -e "${UNITS}/$unit" ]; then
    case $(systemctl show --property=MainPID --value "$unit") in '' | 0) ;; *) exit 0 ;; esac
    systemctl stop "$unit" 2>/dev/null || true
    systemctl reset-failed "$unit" 2>/dev/null || true
  fi
  [ -d "\${log%/*}" ] || mkdir -p -- "\${log%/*}"
  if [ -n "$(find "$log" -size +10485760c 2>/dev/null)" ]; then mv -f -- "$log" "$log.1"; fi
  kind=exec
  if [ "$ready" -gt 0 ]; then kind=notify; fi
  set -- systemd-run --quiet --unit="$unit" --service-type="$kind" --remain-after-exit \\
    --property=EnvironmentFile="$environment" --property=Delegate=yes --property=KillMode=process \\
    --property=TimeoutStartSec=infinity --property=TimeoutStopSec=45 \\
    --property=LimitNOFILE=1048576 --property=TasksMax=infinity \\
    --property=StandardOutput=append:"$log" --property=StandardError=append:"$log" -- "$@"
  if [ "$ready" -gt 0 ]; then exec timeout "$ready" "$@"; fi
  exec "$@"
}
each text "$@"
IFS= read -r end || end=
[ "$end" = '${END}' ] || { echo 'the texts broke off' >&2; exit 1; }
each name "$@"
begun=
each start "$@"
for one in $begun; do
  wait "\${one%%:*}" && continue
  status=$?
  for other in $begun; do kill "\${other%%:*}" 2>/dev/null || true; done
  ready=\${one#*:}
  if [ "$status" -ne ${MISSING} ] && [ "\${ready%%:*}" -gt 0 ] && [ -e "${UNITS}/\${one##*:}" ]; then exit 0; fi
  exit "$status"
done
`;

/**
 * `$1`: unit, `$2`: its environment file, `$3`: stop timeout in seconds. systemd cannot change the timeout of a running unit, so the script
 * requests the stop, waits, then kills.
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

/** `$1`: a socket, `$2`: the default location for clients in the guest. */
export const LINK_SCRIPT = `set -eu
mkdir -p -- "$(dirname -- "$2")"
ln -sfn -- "$1" "$2"
`;

/** Functions of `LEFTOVERS_SCRIPT` and `CLEAR_SCRIPT`. Arguments: containerd socket, its state directory, control group, directories. */
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

/** Lists leftover processes and mounts of an engine, one per line. */
export const LEFTOVERS_SCRIPT = `${AREA}
for pid in $(shims; members); do printf 'process %s (%s)\\n' "$pid" "$(tr '\\0' ' ' < /proc/$pid/cmdline | cut -d' ' -f1)"; done
mounts "$@" | sed 's/^/mount /'
`;

/** Ends leftover processes and unmounts leftover mounts. */
export const CLEAR_SCRIPT = `${AREA}
tries=0
while left=$(shims; members); [ -n "$left" ]; do
  kill -KILL $left 2>/dev/null
  tries=$((tries + 1))
  [ "$tries" -gt 100 ] && { echo "processes of containers cannot be killed: $left" >&2; exit 1; }
  sleep 0.1
done
mounts "$@" | tac | while read -r point; do umount -- "$point" 2>/dev/null || umount --lazy -- "$point"; done
rm -rf --one-file-system -- "$state"
if [ -n "$cgroup" ] && [ -d "/sys/fs/cgroup$cgroup" ]; then find "/sys/fs/cgroup$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; fi
exit 0
`;
