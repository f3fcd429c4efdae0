import { isObject } from '../../../json.ts';
import type { ClusterSpec, EngineName } from '../../driver.ts';
import type { Shell } from '../../shell.ts';

/** What a cluster was started with. */
export interface StartedCluster {
  spec: ClusterSpec;
  /** `v1.33.6+k3s1` */
  release: string;
}

/** Written before anything runs and removed after everything has ended: while it exists, there may be something to stop. */
export interface ClusterRecord {
  read(): Promise<StartedCluster | 'unreadable' | undefined>;
  write(started: StartedCluster): Promise<void>;
  remove(): Promise<void>;
}

export function clusterRecord(shell: Pick<Shell, 'read' | 'write' | 'remove'>, file: string): ClusterRecord {
  return {
    async read() {
      const text = await shell.read(file);
      return text === undefined ? undefined : (parseRecord(text) ?? 'unreadable');
    },
    write: (started) => shell.write(file, `${JSON.stringify(started)}\n`),
    remove: () => shell.remove(file),
  };
}

const ENGINES: readonly EngineName[] = ['moby', 'containerd'];

function parseRecord(text: string): StartedCluster | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || !isObject(value.spec) || typeof value.release !== 'string') return undefined;
  const { version, port, traefik, flannel, spinkube, localhostOnly } = value.spec;
  const { engine: named } = value.spec;
  const engine = ENGINES.find((name) => name === named);
  if (engine === undefined || typeof version !== 'string' || typeof port !== 'number') return undefined;
  if (typeof traefik !== 'boolean' || typeof flannel !== 'boolean') return undefined;
  if (typeof spinkube !== 'boolean' || typeof localhostOnly !== 'boolean') return undefined;
  return { spec: { version, port, traefik, flannel, spinkube, localhostOnly, engine }, release: value.release };
}

export function sameSpec(a: ClusterSpec, b: ClusterSpec): boolean {
  const text = ({ version, port, traefik, flannel, spinkube, localhostOnly, engine }: ClusterSpec) =>
    JSON.stringify([version, port, traefik, flannel, spinkube, localhostOnly, engine]);
  return text(a) === text(b);
}
