/** Guest shell scripts; all input is passed as arguments. */

/** Exit status of the script below when the directory cannot be mounted at that path; retrying does not help. */
export const REFUSED = 3;

/**
 * `$1`: mount point of the host directory, `$2`: its alias on the host, or the same path. Creates the mount point. Leaves a non-empty guest
 * directory alone.
 */
export const PLACE_SCRIPT = `set -eu
umask 022
real=$1 home=$2
refuse() { printf '%s\\n' "$1"; exit ${REFUSED}; }
[ "$(readlink -m -- "$real")" = "$real" ] || refuse "the guest has a link on the way to $real"
[ ! -e "$real" ] || [ -d "$real" ] || refuse "the guest has a file at $real"
mkdir -p -- "$real"
[ -z "$(ls -A -- "$real")" ] || refuse "the guest has something of its own in $real"
[ "$home" = "$real" ] && exit 0
if [ -d "$home" ] && [ ! -L "$home" ]; then rmdir -- "$home" 2>/dev/null || refuse "the guest has something of its own in $home"; fi
if [ -e "$home" ] && [ ! -L "$home" ]; then refuse "the guest has a file at $home"; fi
mkdir -p -- "$(dirname -- "$home")"
ln -sfn -- "$real" "$home"
`;

/** Arguments: directories to unmount. */
export const HIDE_SCRIPT = `set -eu
for each; do
  [ -d "$each" ] || continue
  mount -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=0555 rdctl-hidden "$each"
done
`;

/** `$1`: a mount with everything mounted in it; the rest: stale FUSE connections to abort, so that nothing blocks on them. */
export const CLEAR_SCRIPT = `set -u
point=$1
shift
for each; do
  abort=/sys/fs/fuse/connections/$each/abort
  if [ -e "$abort" ]; then echo 1 > "$abort"; fi
done
umount --lazy --no-canonicalize -- "$point"
`;
