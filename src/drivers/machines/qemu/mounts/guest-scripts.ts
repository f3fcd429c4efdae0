/** Guest shell scripts for shares; all input is passed as arguments. A frozen state belongs to one version of them. */

/** Exit status of `PLACE_SCRIPT` when the directory cannot be mounted at that path; retrying does not help. */
export const REFUSED = 3;

/**
 * `$1`: mount point of a host directory, `$2`: its path on the host, which may lead there through links, `$3`: `guest` if the mount point is in the
 * guest's own file system, `share` if it is in another share; `$4`: the same choice for the path. Creates missing directories in the guest, but not
 * in a share. Leaves files of the guest alone; directories and links there are those of earlier shares, or hold nothing.
 */
export const PLACE_SCRIPT = `set -eu
umask 022
real=$1 path=$2 real_in=$3 path_in=$4
refuse() { printf '%s\\n' "$1"; exit ${REFUSED}; }
[ "$(readlink -m -- "$real")" = "$real" ] || refuse "the guest has a link on the way to $real"
if [ "$real_in" = share ]; then
  [ -d "$real" ] || refuse "$real is not a directory in the machine"
else
  [ ! -e "$real" ] || [ -d "$real" ] || refuse "the guest has a file at $real"
  mkdir -p -- "$real"
  [ -z "$(find "$real" -mindepth 1 ! -type d ! -type l -print -quit)" ] || refuse "the guest has something of its own in $real"
fi
[ "$path" = "$real" ] && exit 0
if [ "$path_in" = share ]; then
  [ "$(readlink -m -- "$path")" = "$real" ] || refuse "a link on the way to $path leads elsewhere in the machine"
  exit 0
fi
if [ -d "$path" ] && [ ! -L "$path" ]; then rmdir -- "$path" 2>/dev/null || refuse "the guest has something of its own in $path"; fi
if [ -e "$path" ] && [ ! -L "$path" ]; then refuse "the guest has a file at $path"; fi
mkdir -p -- "$(dirname -- "$path")"
ln -sfn -- "$real" "$path"
`;

/** Arguments: directories to cover. */
export const HIDE_SCRIPT = `set -eu
for each; do
  [ -d "$each" ] || continue
  mount -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=0555 rdctl-hidden "$each"
done
`;

/**
 * `$1`: a mount to remove with everything mounted in it; the other arguments: stale FUSE connections to abort, so that nothing blocks on them. An
 * sshfs that ends unmounts its directory itself, perhaps just before this.
 */
export const CLEAR_SCRIPT = `set -u
point=$1
shift
for each; do
  abort=/sys/fs/fuse/connections/$each/abort
  if [ -e "$abort" ]; then echo 1 > "$abort"; fi
done
failure=$(LC_ALL=C umount --lazy --no-canonicalize -- "$point" 2>&1) && exit 0
case $failure in *"not mounted"*) exit 0 ;; esac
printf '%s\\n' "$failure" >&2
exit 1
`;

/** `$1`: a link, `$2`: its target. Removes the link that `PLACE_SCRIPT` made. */
export const UNLINK_SCRIPT = `set -eu
if [ -L "$1" ] && [ "$(readlink -- "$1")" = "$2" ]; then rm -f -- "$1"; fi
`;

/**
 * Prints the programs that use a mount, as lines with pid, name and, after a tab, a mount point, ten at most. Arguments: pairs of a mount point and a device (`0:39`). A container
 * has its own mount of the device; a program outside of containers has its working directory or an open file in it. Never touches the mount,
 * which may not respond.
 */
export const USERS_SCRIPT = `perl -e '
my %mounts = @ARGV;
my %points = reverse %mounts;
my $own = readlink "/proc/self/ns/mnt";
my $found = 0;
PROCESS: for my $process (sort { substr($a, 6) <=> substr($b, 6) } glob "/proc/[0-9]*") {
  my $space = readlink "$process/ns/mnt";
  next unless defined $space;
  my $used;
  if ($space ne $own) {
    open my $table, "<", "$process/mountinfo" or next;
    while (<$table>) {
      my (undef, undef, $device, undef, $point) = split / /;
      next unless exists $points{$device};
      $point =~ s/\\\\(\\d{3})/chr oct $1/ge;
      # A copy of the mounts of the guest, as services have: it loses this one together with the guest.
      $used = $points{$device} unless exists $mounts{$point} && / master:/;
    }
  } else {
    for my $link ("$process/cwd", "$process/root", "$process/exe", glob "$process/fd/*") {
      my $path = readlink $link;
      next unless defined $path;
      for my $point (keys %mounts) { $used = $point if $path eq $point or index($path, "$point/") == 0; }
    }
  }
  next unless defined $used;
  open my $comm, "<", "$process/comm" or next;
  chomp(my $name = <$comm>);
  printf "%d %s\\t%s\\n", substr($process, 6), $name, $used;
  last if ++$found == 10;
}' -- "$@"
`;

/**
 * Reads lines with the number of a user and a path whose special bytes are written as `%20`. Sets the owner of each to that user, who owns it
 * already, so that watchers notice. Follows no link, not even one that has just been put there: it would lead to files of the guest.
 */
export const NOTICE_SCRIPT = `exec perl -e '
use Fcntl "O_NOFOLLOW";
my $path_only = 010000000;
while (my $line = <STDIN>) {
  chomp $line;
  my ($user, $path) = split / /, $line, 2;
  $path =~ s/%([0-9a-f]{2})/chr hex $1/ge;
  sysopen my $file, $path, $path_only | O_NOFOLLOW or next;
  my $handle = "/proc/self/fd/" . fileno $file;
  my $at = readlink $handle;
  next unless defined $at && $at eq $path;
  my ($mode, $owner) = (stat $handle)[2, 4];
  next unless defined $owner && $owner == $user && ($mode & 0170000) != 0120000;
  chown $user, -1, $handle;
}'
`;
