import { DATA_SCRIPT } from '../../../guest-images/recipe.ts';
import { SETTLE_SCRIPT } from '../settle.ts';

/** Exit statuses of the scripts below. */
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
