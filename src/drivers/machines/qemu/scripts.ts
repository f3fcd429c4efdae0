/**
 * Scripts for the shell of the guest. They are the same for every call: what they work on comes as arguments, never as a part of
 * their text.
 */

/** Line after an input. Without it the input broke off on its way, and nothing is done with it. */
export const END = '# end';

/** Status of the script below. */
export const MISSING = 3;

/** Where systemd has the units that it was given by a program, as long as it knows them. */
const UNITS = '/run/systemd/transient';

/**
 * Arguments, as often as there are some: `absent PATH`, `directory PATH` (mode 0700), `file PATH BYTES`, and `program UNIT ENVIRONMENT LOG
 * READY COUNT` with so many words of the program. The input is the texts of the files, one after the other, and the line above. Each file
 * is replaced as a whole, with mode 0600, and its directory made; none is, and no program started, when one of them did not come through.
 *
 * All programs are started at once, and those that run left alone. `READY`: seconds in which one says that it is ready, 0 for one that
 * says nothing. Once one does not, the others are not waited for either; it stays a unit that has failed or goes on starting, and is
 * found as that. Status 3: the guest does not have the program that is named. `KillMode=process`: what a program started is its own
 * affair, as on any other machine. A log is begun anew at 10 MiB.
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
