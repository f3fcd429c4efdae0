import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readDeploymentInput } from '../../../profiles/document/deployment-input.ts';
import { readPart } from '../../../profiles/document/load.ts';
import { importerFor } from '../../../profiles/formats/index.ts';
import { readSavedPlan } from '../../../src/client/saved-plan.ts';
import { readCredentials } from '../../../src/drivers/clusters/k3s/api.ts';
import { parseManifest } from '../../../src/drivers/guest-images/image.ts';
import { parseMetadata } from '../../../src/features/extensions/metadata.ts';
import {
  credentialHelpers,
  currentContext,
  deselect,
  select,
} from '../../../src/features/host-integration/docker-config.ts';
import { entryIn, withEntry, withoutEntry } from '../../../src/features/host-integration/kube-entries.ts';
import { parseAllowedSigners } from '../../../src/features/upgrade/signers.ts';
import { fileInSums } from '../../../src/features/upgrade/sums.ts';
import { headerProblem } from '../../../src/os/disk-header.ts';
import { diskHeader } from '../../helpers/disk-header.ts';

/** The name of every document, which a refusal has to contain. */
export const LABEL = 'the-foreign-document';

/** Something that reads what others wrote. */
export interface Reader {
  name: string;
  /** Valid documents. */
  samples: readonly Buffer[];
  /** Returns, or throws an RdError. */
  read(bytes: Buffer): unknown;
  /** Its callers name the file. */
  nameless?: true;
}

const CONTEXT = { platform: 'linux', arch: 'x64', env: {}, cwd: '/nowhere' } as const;
const ENTRY = { name: 'rdctl', cluster: { server: 'https://127.0.0.1:6443' }, user: { token: 'x' } };

function filesIn(directory: string, name: RegExp): Buffer[] {
  const names = readdirSync(directory).filter((each) => name.test(each));
  return names.sort().map((each) => readFileSync(join(directory, each)));
}

function sourceOf(bytes: Buffer, label = LABEL): Source {
  return { name: label, label, bytes, size: bytes.length };
}
type Source = Parameters<typeof readPart>[0];

const text = (...lines: string[]) => Buffer.from(`${lines.join('\n')}\n`);

/** A profile with findings says where each is. */
async function profile(bytes: Buffer): Promise<void> {
  const { findings } = await readPart(sourceOf(bytes), CONTEXT);
  for (const { file, message, line = 1, column = 1 } of findings) {
    if (file !== LABEL || message === '' || !(line > 0 && column > 0)) throw new Error(`without a place: ${message}`);
  }
}

/** Of each deployment format, as detected. */
function imported(extension: string) {
  return async (bytes: Buffer) => {
    const label = `${LABEL}.${extension}`;
    const importer = await importerFor({ bytes, size: bytes.length, label });
    return importer?.read(bytes, label);
  };
}

const POLICIES = 'examples/policies';

/** Readers of bytes and texts. */
export const READERS: readonly Reader[] = [
  { name: 'a profile', samples: filesIn('examples', /\.(?:yaml|json)$/), read: profile },
  {
    name: 'the input of a deployment profile',
    samples: [...filesIn('examples', /\.yaml$/), ...filesIn('test/golden/profiles', /^full\.settings\.json$/)],
    read: (bytes) => readDeploymentInput(sourceOf(bytes), 'linux'),
  },
  {
    name: 'a property list',
    samples: [...filesIn(POLICIES, /\.plist$/), ...filesIn('test/golden/policies', /\.plist$/)],
    read: imported('plist'),
  },
  { name: 'a configuration profile', samples: filesIn(POLICIES, /\.mobileconfig$/), read: imported('mobileconfig') },
  {
    name: 'a registry file',
    samples: [...filesIn(POLICIES, /\.reg$/), ...filesIn('test/golden/profiles', /\.reg$/)],
    read: imported('reg'),
  },
  { name: 'a policy file of Windows', samples: filesIn(POLICIES, /\.pol$/), read: imported('pol') },
  { name: 'a deployment profile of Linux', samples: filesIn(POLICIES, /\.json$/), read: imported('json') },
  {
    name: 'a saved plan',
    samples: [
      text(
        '{"kind":"Plan","formatVersion":1,"target":{"product":"rdctl","driver":"host","simulated":false,"home":"/h"},',
        '"changes":[],"blastRadius":[{"lost":true}],"saved":{"createdAt":"2026-01-01T00:00:00Z","files":["a.yaml"],',
        '"digests":{"live":"a","locks":"b","schema":"c","profile":"d"},"request":{"settings":{},"state":"started","prune":[]}}}',
      ),
    ],
    read: (bytes) => readSavedPlan(bytes.toString(), LABEL),
  },
  {
    name: "the user's kubeconfig",
    samples: [
      Buffer.from(withEntry(undefined, ENTRY)),
      text(
        'apiVersion: v1',
        'clusters:',
        '- cluster: {server: "https://a"}',
        '  name: a # x',
        'users: []',
        'contexts:',
      ),
    ],
    read(bytes) {
      const there = bytes.toString();
      entryIn(there, ENTRY.name);
      const next = withEntry(there, ENTRY);
      if (next !== 'foreign') withoutEntry(next, ENTRY.name);
    },
    nameless: true,
  },
  {
    name: 'the configuration of docker',
    samples: [text('{', '  "auths": {"a": {}},', '  "credHelpers": {"b": "c"},', '  "currentContext": "default"', '}')],
    read(bytes) {
      const there = bytes.toString();
      currentContext(there);
      credentialHelpers(there);
      const chosen = select(there, 'rdctl');
      deselect(chosen.text, chosen.selection);
    },
    nameless: true,
  },
  {
    name: 'the kubeconfig of k3s',
    samples: [
      text(
        ...['apiVersion: v1', 'clusters:', '- cluster:', '    certificate-authority-data: LS0t', 'users:', '- user:'],
        ...['    client-certificate-data: LS0t', '    client-key-data: LS0t'],
      ),
    ],
    read: (bytes) => readCredentials(bytes.toString()),
  },
  {
    name: 'the metadata of an extension',
    samples: [text('{"icon":"/i.svg","ui":{"tab":{"title":"T","root":"/ui"}},"vm":{"composefile":"/c.yaml"}}')],
    read: (bytes) => parseMetadata(bytes.toString(), 'linux'),
  },
  {
    name: 'the manifest of a guest image',
    samples: [text('{"format":1,"name":"debian-13","architecture":"x64","files":{"disk":{"name":"d","bytes":1}}}')],
    read: (bytes) => parseManifest(bytes.toString()),
  },
  {
    name: 'the sums of a release',
    samples: [text(`${'a'.repeat(64)}  rdctl-1.2.3-linux-x64`, `${'b'.repeat(64)}  rdctl-1.2.3-linux-arm64`)],
    read: (bytes) => fileInSums(bytes.toString(), 'linux-x64', '1.2.3'),
    nameless: true,
  },
  {
    name: 'the allowed signers',
    samples: [
      text('# keys', 'release ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f'),
    ],
    read: (bytes) => parseAllowedSigners(bytes.toString(), LABEL),
  },
  {
    name: 'the header of a disk',
    samples: [diskHeader(), diskHeader({ version: 2 }), diskHeader({ extensions: [[0x6803f857, 'dirty']] })],
    read: (bytes) => headerProblem(bytes),
  },
];
