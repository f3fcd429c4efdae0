import { DATA_SCRIPT, DATA_SERIAL } from '../../guest-images/recipe.ts';
import type { EngineNetwork } from '../../shell.ts';

/** The network of containers, identical in every guest: a guest hosts nothing else, and its addresses are not visible outside. */
export const GUEST_NETWORK: EngineNetwork = { bridge: 'rdctl0', pool: '172.30.0.0/16', shared: false };
const BRIDGE_ADDRESS = '172.30.0.1/24';

/** Creates the containers' bridge and its NAT rule. Idempotent. */
export const NETWORK_SCRIPT = `set -eu
[ -e /sys/class/net/${GUEST_NETWORK.bridge} ] || ip link add ${GUEST_NETWORK.bridge} type bridge
ip address replace ${BRIDGE_ADDRESS} dev ${GUEST_NETWORK.bridge}
ip link set ${GUEST_NETWORK.bridge} up
rule='POSTROUTING -s ${GUEST_NETWORK.pool} ! -d ${GUEST_NETWORK.pool} -j MASQUERADE'
iptables -w -t nat -C $rule 2>/dev/null || iptables -w -t nat -A $rule
`;

/** Lock of a running growth, with its target size, and its error if it failed. */
const LOCK = '/run/rdctl-growth';

/**
 * Grows the file system of the data disk in the guest, independent of the caller: a large one takes minutes, and the kernel cannot abort it. A second
 * growth waits for the first. Data read while the kernel writes may look damaged.
 */
const WORK = `tries=0
while :; do
  if why=$(resize2fs "/dev/$1" 2>&1); then why=; break; fi
  why=\${why:-resize2fs failed}
  case $why in
  *"resource busy"*) ;;
  *"checksum does not match"*) [ "$tries" -lt 5 ] || break; tries=$((tries + 1)) ;;
  *) break ;;
  esac
  sleep 2
done
printf "%s\\n%s" "$2" "$why" > ${LOCK}.new
mv ${LOCK}.new ${LOCK}.end`;

/** Prints the sizes of the disk and of its file system, from the superblock: the only work when nothing has to grow. */
const SIZES = `for each in /sys/block/vd*; do
  serial=
  read -r serial < "$each/serial" || :
  [ "$serial" != ${DATA_SERIAL} ] || disk=\${each##*/}
done
read -r sectors < "/sys/block/$disk/size"
whole=$((sectors * 512))
measure() {
  set -- $(od -v -An -tu4 -j1028 -N336 "/dev/$disk")
  bytes=$((($1 + (\${84} << 32)) * (1024 << $6)))
}
measure
`;

const GROW = `grow() {
  exec 9> ${LOCK}
  state=going
  if flock -n 9; then
    for_size= why=
    if [ -e ${LOCK}.end ]; then
      { IFS= read -r for_size && why=$(cat); } < ${LOCK}.end || :
    fi
    if [ "$bytes" -ge "$whole" ]; then state=done
    elif [ "$1" = look ] && [ "$for_size" = "$whole" ]; then
      state=done
      [ -z "$why" ] || state=failed
    else
      rm -f ${LOCK}.end
      setsid -f sh -c '${WORK}' grow "$disk" "$whole" < /dev/null > /dev/null 2>&1
    fi
  fi
  exec 9>&-
  measure
}
tell() {
  printf '%s %s\\n' "$state" "$bytes"
  [ "$state" != failed ] || printf '%s\\n' "$why"
}
`;

/** `$1`: `begin` retries a failed growth, `look` does not. Either order starts one that has not been started. */
export const GROWTH_SCRIPT = `set -eu
${SIZES}${GROW}grow "$1"
tell
`;

/**
 * For a guest that has come up: reports the progress of a growth when it ends or after some seconds; prints nothing when none is needed.
 * Never fails.
 */
export const START_SCRIPT = `(
${SIZES}if [ "$bytes" -lt "$whole" ]; then
${GROW}grow begin
looks=0
while [ "$state" = going ] && [ "$looks" -lt 40 ]; do
  sleep 0.5
  looks=$((looks + 1))
  grow look
done
[ "$state" = done ] || tell
fi
) 2>&1 || echo 'failed 0'
`;

/** Exits with status 1 during a growth, which would block the freeze and with it every writer. */
export const REFUSE_WHILE_GROWING = `flock -n ${LOCK} true || { echo 'its file system is growing, which may take some minutes' >&2; exit 1; }
`;

/**
 * For a guest that has come up with its data disk: sets up its network and grows the file system to the size of the disk. Reports one that
 * is still growing or cannot grow, and the number of processors that its kernel can use. Idempotent.
 */
export const SETTLE_SCRIPT = `${NETWORK_SCRIPT}${START_SCRIPT}read -r range < /sys/devices/system/cpu/possible
echo "cpus $((\${range##*-} + 1))"
`;

/** Parses the output of the settle script. */
export function parseSettled(text: string): { growth: string; possibleCpus?: number } {
  const count = /^cpus (\d+)$/m.exec(text)?.[1];
  const growth = text.replace(/^cpus \d+\n?/m, '');
  return count === undefined ? { growth } : { growth, possibleCpus: Number(count) };
}

/** Exit statuses of `GIVE_BACK_SCRIPT` and `WAKE_SCRIPT`. */
export const CANNOT = 3;
export const SHARES = 4;
export const NO_DATA = 5;

/**
 * Releases the data disk. Status 3: the guest image does not support it. Status 4: host directories are mounted, which would not survive a
 * resume.
 */
export const GIVE_BACK_SCRIPT = `set -eu
[ -x ${DATA_SCRIPT} ] || exit ${CANNOT}
while read -r _ _ kind _; do
  case $kind in fuse.* | 9p | virtiofs) exit ${SHARES} ;; esac
done < /proc/mounts
exec ${DATA_SCRIPT} unmount
`;

/**
 * Ends every ssh session, including this one: a frozen guest must not hold sessions that never respond. systemd does it, because a session
 * cannot end itself last.
 */
export const END_SESSIONS_SCRIPT = `set -eu
listener=$(systemctl show --property=MainPID --value ssh.service)
exec systemd-run --quiet --no-block --collect sh -c \\
  'grep -vx "$1" /sys/fs/cgroup/system.slice/ssh.service/cgroup.procs | xargs -r kill -KILL' end "$listener"
`;

/**
 * Gives a resumed guest its identity and settles it. `$1`: seconds since 1970, `$2`: its name; standard input is fresh entropy, because all
 * guests from one state would otherwise generate the same random numbers (0x5207 is RNDRESEEDCRNG). Status 5: it has its identity but no
 * data disk. Prints the output of the settle script.
 */
export const WAKE_SCRIPT = `set -eu
date -u -s "@$1" > /dev/null
hostname "$2"
perl -e 'local $/; my $seed = <STDIN>; open(my $pool, "+>", "/dev/urandom") or die "urandom: $!";
syswrite($pool, $seed) == length($seed) or die "urandom: $!"; defined(ioctl($pool, 0x5207, 0)) or die "reseed: $!";'
${DATA_SCRIPT} mount >&2 || exit ${NO_DATA}
${SETTLE_SCRIPT}`;
