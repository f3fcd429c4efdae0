import { randomUUID } from 'node:crypto';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { PRODUCT } from '../../product.ts';
import { fullName, parseReference, splitTag } from '../../settings/image-reference.ts';
import type { Companion, CompanionContainers, ImageStore, OpenImage } from '../driver.ts';
import type { ClusterEngine, Shell } from '../shell.ts';
import { imageLabels, pullFailure } from './image-store.ts';
import { askMoby, callMoby, containersWith, followMoby, mobyRefusal, POD, removeContainer } from './moby-api.ts';
import { mobyPlaces } from './moby-config.ts';

/** Longest silence of a pull: one that reports no progress for this long hangs. */
const PULL_SILENCE_MS = 180_000;
/** Label of the never-started containers created to read an image; the value identifies their owner. */
const READER = `${PRODUCT.name}.image-reader`;
const OWNER_ID = randomUUID();

/** Returns the images of the dockerd at the socket. Image files are read through a container that never runs. */
export function mobyImages(socket: () => Promise<string>): ImageStore {
  const inspect = async (reference: string, signal: AbortSignal) =>
    askMoby(await socket(), { method: 'GET', path: `/images/${reference}/json` }, signal);

  return {
    has: async (reference, signal) => (await inspect(reference, signal)) !== undefined,
    async pull(reference, signal) {
      const { name, tag = 'latest' } = splitTag(reference);
      const query = new URLSearchParams({ fromImage: name, tag });
      const call = { method: 'POST', path: `/images/create?${query}`, silenceMs: PULL_SILENCE_MS } as const;
      await followMoby(await socket(), call, signal, (why) => pullFailure('moby', reference, why));
    },
    async tags(name, signal) {
      const list = await askMoby(await socket(), { method: 'GET', path: '/images/json' }, signal);
      const references = Array.isArray(list)
        ? list.flatMap((image) => (isObject(image) ? textsOf(image.RepoTags) : []))
        : [];
      return references.flatMap((text) => {
        const reference = parseReference(text);
        return reference?.tag !== undefined && fullName(reference) === name ? [reference.tag] : [];
      });
    },
    async open(reference, signal, look) {
      const at = await socket();
      const image = await inspect(reference, signal);
      if (!isObject(image)) throw new RdError('ERR_NOT_FOUND', `moby has no image ${reference}`);
      await removeStrays(at, signal);
      const container = await makeReader(at, reference, signal);
      try {
        return await look({
          labels: imageLabels(image.Config),
          archive: (path) => archiveOf(at, container, path, signal),
        });
      } finally {
        // Remove the container after a cancellation too.
        await removeContainer(at, container, AbortSignal.timeout(20_000)).catch(() => undefined);
      }
    },
  };
}

async function makeReader(socket: string, image: string, signal: AbortSignal): Promise<string> {
  // A container of an image without a command needs an explicit one.
  const body = { Image: image, Cmd: ['none'], NetworkDisabled: true, Labels: { [READER]: OWNER_ID } };
  const made = await askMoby(socket, { method: 'POST', path: '/containers/create', body }, signal);
  if (isObject(made) && typeof made.Id === 'string') return made.Id;
  throw new RdError('ERR_NOT_FOUND', `moby no longer has the image ${image}`);
}

/** Removes containers left by a killed service. */
async function removeStrays(socket: string, signal: AbortSignal): Promise<void> {
  for (const { Id, Labels } of await containersWith(socket, READER, signal)) {
    if (isObject(Labels) && Labels[READER] !== OWNER_ID) await removeContainer(socket, Id, signal);
  }
}

/** Returns an archive of a path. dockerd resolves links within the container, the last one only for the path that it leads to. */
async function archiveOf(
  socket: string,
  container: string,
  path: string,
  signal: AbortSignal,
): ReturnType<OpenImage['archive']> {
  const at = (inside: string) => `/containers/${container}/archive?path=${encodeURIComponent(inside)}`;
  const head = await callMoby(socket, { method: 'HEAD', path: at(path) }, signal);
  head.resume();
  if (head.statusCode === 404) return undefined;
  const target = linkTarget(head.headers['x-docker-container-path-stat']);
  const answer = await callMoby(socket, { method: 'GET', path: at(target ?? path) }, signal);
  if (answer.statusCode === 200) return answer;
  const refusal = await mobyRefusal(answer);
  // A path below a file is a server error of dockerd.
  if (answer.statusCode === 404 || /not a directory/.test(refusal.message)) return undefined;
  throw refusal;
}

function linkTarget(header: string | string[] | undefined): string | undefined {
  const stat: unknown = JSON.parse(Buffer.from(String(header ?? 'e30='), 'base64').toString('utf8'));
  const target = isObject(stat) ? stat.linkTarget : undefined;
  return typeof target === 'string' && target !== '' ? target : undefined;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

const POD_GRACE_S = 5;
/** Unpacking a large layer prints nothing for a while. */
const LOAD_SILENCE_MS = 5 * 60_000;

/** Returns moby as the engine of a cluster. Pods share the images of all users. */
export function mobyPods(shell: Shell): ClusterEngine {
  const { socket } = mobyPlaces(shell.places);
  const local = () => shell.localSocket(socket);

  return {
    socket,
    async loadImages(archive, signal) {
      const call = { method: 'POST', path: '/images/load', file: archive, silenceMs: LOAD_SILENCE_MS } as const;
      const failure = (why: string) => new RdError('ERR_DRIVER_FAILED', `dockerd cannot load images: ${why}`);
      await followMoby(await local(), call, signal, failure);
    },
    async endPods(how, signal) {
      const at = await local();
      const pods = await containersWith(at, POD, signal);
      await Promise.all(
        pods.map(({ Id }) =>
          how === 'stop'
            ? askMoby(at, { method: 'POST', path: `/containers/${Id}/stop?t=${POD_GRACE_S}` }, signal)
            : removeContainer(at, Id, signal),
        ),
      );
    },
  };
}

/** Stop timeout of a container in seconds. */
const COMPANION_GRACE_S = 10;
const ID = `${PRODUCT.name}.companion`;
const IMAGE = `${PRODUCT.name}.companion.image`;

interface Found extends Companion {
  container: string;
  running: boolean;
}

/** Manages containers with a dockerd restart policy, so that they restart with it; found by their labels. */
export function mobyCompanions(socket: () => Promise<string>): CompanionContainers {
  async function find(signal: AbortSignal): Promise<Found[]> {
    return (await containersWith(await socket(), ID, signal)).flatMap(({ Id, State, Labels }) => {
      const { [ID]: id, [IMAGE]: image } = isObject(Labels) ? Labels : {};
      if (typeof id !== 'string' || typeof image !== 'string') return [];
      return [{ id, image, container: Id, running: State === 'running' || State === 'restarting' }];
    });
  }

  async function remove(id: string, signal: AbortSignal): Promise<void> {
    const at = await socket();
    for (const { container } of (await find(signal)).filter((container) => container.id === id)) {
      await askMoby(at, { method: 'POST', path: `/containers/${container}/stop?t=${COMPANION_GRACE_S}` }, signal);
      await removeContainer(at, container, signal);
    }
  }

  return {
    async list(signal) {
      return (await find(signal)).map(({ id, image }) => ({ id, image }));
    },
    remove,
    async ensure({ id, image }, signal) {
      const at = await socket();
      const there = (await find(signal)).filter((found) => found.id === id);
      const [only] = there;
      if (only && there.length === 1 && only.image === image) {
        if (!only.running) await askMoby(at, { method: 'POST', path: `/containers/${only.container}/start` }, signal);
        return;
      }
      await remove(id, signal);
      const body = {
        Image: image,
        Labels: { [ID]: id, [IMAGE]: image },
        HostConfig: { RestartPolicy: { Name: 'always' }, Init: true },
      };
      const made = await askMoby(at, { method: 'POST', path: '/containers/create', body }, signal);
      const container = isObject(made) ? made.Id : undefined;
      if (typeof container !== 'string') throw new RdError('ERR_NOT_FOUND', `moby has no image ${image}`);
      try {
        await askMoby(at, { method: 'POST', path: `/containers/${container}/start` }, signal);
      } catch (error) {
        await remove(id, signal);
        throw error;
      }
    },
  };
}
