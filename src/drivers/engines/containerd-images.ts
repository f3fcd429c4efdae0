import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import { isObject, type JsonObject, parseObject } from '../../json.ts';
import { bytesOf } from '../../os/stream-bytes.ts';
import { isLoopback, splitRegistry, splitTag } from '../../settings/image-reference.ts';
import type { ImageStore } from '../driver.ts';
import { readLayers } from '../image-layers/layers.ts';
import type { ClusterEngine, Shell } from '../shell.ts';
import { containerdPlaces, ctrArguments, linesOf } from './containerd-daemon.ts';
import { imageLabels, pullFailure } from './image-store.ts';

/** The namespace that clients such as nerdctl use by default. */
const NAMESPACE = 'default';
const PULL_MS = 30 * 60_000;
const READ_MS = 10 * 60_000;
const DOCUMENT_BYTES = 4 * 1024 * 1024;
/** The architecture as named in image formats. */
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

export interface ContainerdImagesParts {
  shell: Shell;
  socket: string;
  /** Returns the directory with the registry host configuration, or undefined if there is none. */
  hostsDirectory(): Promise<string | undefined>;
}

/**
 * Reads images of a containerd with `ctr`. Image files are read from the layers in the content store: nothing is mounted, so nothing stays mounted,
 * and the machine never follows links of an image.
 */
export function containerdImages({ shell, socket, hostsDirectory }: ContainerdImagesParts): ImageStore {
  const argv = (args: readonly string[]) => ctrArguments(socket, ['--namespace', NAMESPACE, ...args]);
  const ctr = async (args: readonly string[], signal: AbortSignal) =>
    (await shell.run(argv(args), { signal, maxOutput: 16 * 1024 * 1024 })).stdout;
  const content = (digest: string, signal: AbortSignal) =>
    shell.stream(argv(['content', 'get', digest]), { signal, timeoutMs: READ_MS });

  async function digestOf(reference: string, signal: AbortSignal): Promise<string | undefined> {
    const table = await ctr(['images', 'ls', `name==${JSON.stringify(reference)}`], signal);
    const row = table.split('\n').find((line) => line.startsWith(`${reference} `));
    return /\bsha256:[0-9a-f]{64}\b/.exec(row ?? '')?.[0];
  }

  async function documentOf(digest: unknown, signal: AbortSignal): Promise<JsonObject> {
    if (typeof digest !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(digest)) throw damageError('a digest is missing');
    const value = parseObject((await bytesOf(content(digest, signal), DOCUMENT_BYTES)).toString('utf8'));
    if (value) return value;
    throw damageError(`${digest} is not a JSON object`);
  }

  /** Returns the manifest of an index for this machine's platform. */
  async function manifestOf(digest: string, signal: AbortSignal): Promise<JsonObject> {
    const document = await documentOf(digest, signal);
    if (!Array.isArray(document.manifests)) return document;
    const match = document.manifests.find(
      (each): each is JsonObject =>
        isObject(each) &&
        isObject(each.platform) &&
        each.platform.os === 'linux' &&
        each.platform.architecture === ARCHITECTURE,
    );
    if (!match) throw damageError(`it has nothing for linux/${ARCHITECTURE}`);
    return documentOf(match.digest, signal);
  }

  return {
    has: async (reference, signal) => (await digestOf(reference, signal)) !== undefined,
    async pull(reference, signal) {
      const hosts = await hostsDirectory();
      const plain = isLoopback(splitRegistry(reference).registry) ? ['--plain-http'] : [];
      const args = ['images', 'pull', ...(hosts === undefined ? [] : ['--hosts-dir', hosts]), ...plain, reference];
      try {
        // It redraws its progress continuously.
        for await (const _drawn of shell.stream(argv(args), { signal, timeoutMs: PULL_MS }));
      } catch (error) {
        if (!(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') throw error;
        throw pullFailure('containerd', reference, error.message, error);
      }
    },
    async tags(name, signal) {
      const lines = (await ctr(['images', 'ls', '-q'], signal)).split('\n');
      return lines.flatMap((line) => {
        const found = splitTag(line);
        return found.name === name && found.tag !== undefined ? [found.tag] : [];
      });
    },
    async open(reference, signal, look) {
      const digest = await digestOf(reference, signal);
      if (digest === undefined) throw new RdError('ERR_NOT_FOUND', `containerd has no image ${reference}`);
      const manifest = await manifestOf(digest, signal);
      const { config } = await documentOf(isObject(manifest.config) ? manifest.config.digest : undefined, signal);
      const layers = (Array.isArray(manifest.layers) ? manifest.layers : []).map((layer) => {
        const layerDigest = isObject(layer) ? layer.digest : undefined;
        if (typeof layerDigest !== 'string') throw damageError('a layer has no digest');
        return layerDigest;
      });
      const archive = await readLayers(layers.length, (layer) => content(layers[layer] ?? '', signal));
      return look({ labels: imageLabels(config), archive });
    },
  };
}

function damageError(what: string): RdError {
  return new RdError('ERR_DRIVER_FAILED', `the image cannot be read: ${what}`);
}

/** The containerd namespace of Kubernetes. */
export const PODS = 'k8s.io';
const IMPORT_MS = 15 * 60_000;

/** Returns containerd as the engine of a cluster. Pods have images of their own. */
export function containerdPods(shell: Shell): ClusterEngine {
  const { socket } = containerdPlaces(join(shell.places.data, 'containerd'), join(shell.places.run, 'containerd'));
  const inside = join(shell.places.data, 'pod-images.tar');
  const ctr = async (args: readonly string[], signal: AbortSignal, timeoutMs = 60_000) =>
    (await shell.run(ctrArguments(socket, ['--namespace', PODS, ...args]), { signal, timeoutMs })).stdout;

  return {
    socket,
    async loadImages(archive, signal) {
      try {
        await shell.copyIn(archive, `${inside}.gz`, 0o600, signal);
        // ctr 1.6 reads uncompressed archives only.
        await shell.run(['gzip', '-d', '-f', `${inside}.gz`], { signal, timeoutMs: IMPORT_MS });
        await ctr(['images', 'import', '--digests', inside], signal, IMPORT_MS);
      } finally {
        for (const file of [inside, `${inside}.gz`]) await shell.remove(file);
      }
    },
    async endPods(how, signal) {
      for (const task of linesOf(await ctr(['tasks', 'ls', '-q'], signal))) {
        await ctr(['tasks', 'delete', '--force', task], signal);
      }
      if (how === 'stop') return;
      for (const container of linesOf(await ctr(['containers', 'ls', '-q'], signal))) {
        await ctr(['containers', 'delete', container], signal);
      }
    },
  };
}
