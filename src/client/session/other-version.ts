import { RdError } from '../../errors.ts';
import { PRODUCT } from '../../product.ts';
import { type LockHolder, lockHolder } from '../../state/home-lock.ts';
import type { Connection } from '../connection.ts';
import type { ConnectionFlags } from '../discovery.ts';
import { homeOf, isElsewhere, type SessionIo } from './home.ts';

/**
 * Returns the reason not to contact the service of this home: its interface is that of another version of this program, so its answers might be
 * misunderstood. Undefined unless the lock says so: for other applications, services that were named, and files that someone wrote. Sends nothing.
 */
export async function otherVersion(
  connection: Connection,
  globals: ConnectionFlags,
  io: SessionIo,
): Promise<RdError | undefined> {
  const { file, pid, revision } = connection;
  if (revision === PRODUCT.revision || isElsewhere(connection, globals, io)) return undefined;
  const where = homeOf(io);
  if (file !== where.connectionFile) return undefined;
  const holder = await lockHolder(where.serviceLock);
  if (!holder?.alive || holder.pid !== pid || holder.revision === PRODUCT.revision) return undefined;
  return refusal(holder);
}

function refusal({ pid, startedAt, version, revision = 0 }: LockHolder): RdError {
  const isNewer = revision > PRODUCT.revision;
  const name = version === undefined ? 'rdctl' : `rdctl ${version}`;
  const since = startedAt === undefined ? '' : `, running since ${startedAt}`;
  const which = revision === 0 ? '' : ` with interface revision ${revision}`;
  const own = `rdctl ${PRODUCT.version} with interface revision ${PRODUCT.revision}`;
  return new RdError(
    'ERR_OTHER_VERSION',
    `the running service (pid ${pid}${since}) is ${isNewer ? 'a newer' : 'an older'} ${name}${which}, and this tool is ${own}; nothing was changed`,
    {
      advice: isNewer
        ? 'Use the tool that started it. To go on with this one, run `rdctl shutdown`, then `rdctl start`; files that only the newer one can read are named then.'
        : 'Run `rdctl shutdown`, then `rdctl start`: settings, images, containers and volumes stay.',
    },
  );
}
