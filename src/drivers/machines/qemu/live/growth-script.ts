import { DATA_SERIAL } from '../../../guest-images/recipe.ts';

/** A running growth holds the lock, and records its target size, and its error when it failed. */
const LOCK = '/run/rdctl-growth';

/**
 * Grows the file system of the data disk in the guest, independent of the caller: a large one takes minutes, and the kernel cannot abort
 * it. A second growth waits for the first. What is read while the kernel writes may look damaged.
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

/** Sizes of the disk and of its file system, from the superblock: the only work when nothing has to grow. */
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

/** `$1`: `begin` retries a failed growth, `look` does not. Either starts one that has not been started. */
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
