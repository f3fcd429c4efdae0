import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../../../json.ts';
import { systemCode } from '../../../os/io-error.ts';
import { failed, passed } from '../check.ts';
import { probe } from '../http-probe.ts';
import { mobyCheck } from './engine.ts';

/** Metadata of the two image stores, below the data directory of moby. */
const CLASSIC = 'image';
const SNAPSHOTTER = join('containerd', 'daemon', 'io.containerd.content.v1.content', 'blobs', 'sha256');

/** The inactive image store of moby, which no client sees, contains no images. */
export const mobyImageStore = mobyCheck('MOBY_IMAGE_STORE', async (socket, _context, signal) => {
  const { status, body } = await probe('GET', { socket, path: '/info' }, signal);
  if (status !== 200) return [];
  const facts: unknown = JSON.parse(body);
  if (!isObject(facts) || typeof facts.DockerRootDir !== 'string') return [];
  const usesSnapshotter = JSON.stringify(facts.DriverStatus ?? []).includes('io.containerd.snapshotter');
  const root = facts.DockerRootDir;
  const stranded = usesSnapshotter ? await classicImages(root) : (await entries(join(root, SNAPSHOTTER))).length;
  const [used, other] = usesSnapshotter ? ['snapshotter', 'classic'] : ['classic', 'snapshotter'];
  if (stranded === 0) return [passed(`All images of moby are in the store that it uses (\`${used}\`).`)];
  return [
    failed(`moby uses its \`${used}\` image store; the \`${other}\` store has images, too, which are not shown.`, [
      {
        description: `To see them: \`rdctl set --container-engine.moby-storage-driver ${other}\`. To move one: \`docker save\` there, \`docker load\` here.`,
      },
    ]),
  ];
});

/** Images of every storage driver that the classic store was used with. */
async function classicImages(root: string): Promise<number> {
  const drivers = await entries(join(root, CLASSIC));
  const images = drivers.map((driver) => entries(join(root, CLASSIC, driver, 'imagedb', 'content', 'sha256')));
  return (await Promise.all(images)).flat().length;
}

/** Empty for a missing directory: also when the engine is on another machine. */
async function entries(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return [];
    throw error;
  });
}
