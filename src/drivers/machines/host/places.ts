import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { PRODUCT } from '../../../product.ts';

/** Everything of one instance on the host is named after its directory, so that it is found again after a crash. */
export interface HostPlaces {
  /** Eight hexadecimal digits that stand for the directory. */
  id: string;
  /** Machine record. */
  record: string;
  data: string;
  run: string;
  /** True when `run` is outside the directory of the driver. */
  runElsewhere: boolean;
  /** Name of the bridge; the kernel takes 15 characters. */
  bridge: string;
  /** Name of the chains in the packet filter; iptables takes 28 characters. */
  chain: string;
  /** Comment that marks every rule of the instance. */
  tag: string;
  /** Control group of the containers, below the root of the hierarchy. */
  cgroup: string;
}

/** The kernel's limit for the path of a unix socket, without the end mark. */
const MAX_SOCKET_PATH = 107;
/** The longest path that an engine puts below `run`: dockerd's own, with a network id of 12 digits. */
const LONGEST_SOCKET = 'moby/exec/libnetwork/0123456789ab.sock';

/** `directory` is the driver's private directory. A directory that is too long for sockets gets a short one in `/run`. */
export function hostPlaces(directory: string): HostPlaces {
  const id = createHash('sha256').update(directory).digest('hex').slice(0, 8);
  const inside = join(directory, 'run');
  const fits = Buffer.byteLength(join(inside, LONGEST_SOCKET)) <= MAX_SOCKET_PATH;
  return {
    id,
    record: join(directory, 'machine.json'),
    data: join(directory, 'data'),
    run: fits ? inside : join('/run', PRODUCT.name, id),
    runElsewhere: !fits,
    bridge: `rd${id}`,
    chain: `RDCTL-${id}`,
    tag: `${PRODUCT.name}:${id}`,
    cgroup: `/${PRODUCT.name}-${id}`,
  };
}
