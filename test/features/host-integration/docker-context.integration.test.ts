import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  provideContext,
  releaseContext,
  withdrawContext,
} from '../../../src/features/host-integration/docker-context.ts';
import type { IntegrationTargets } from '../../../src/features/host-integration/targets.ts';
import { editOperations } from '../../../src/features/host-integration/user-file.ts';
import { testTargets } from '../../helpers/integration-targets.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const ENDPOINT = 'unix:///home/x/docker.sock';

let targets: IntegrationTargets;
let config: string;
beforeEach(() => {
  targets = testTargets();
  config = join(targets.dockerConfig, 'config.json');
});

function metaOf(name = 'rdctl'): string {
  const digest = createHash('sha256').update(name).digest('hex');
  return join(targets.dockerConfig, 'contexts', 'meta', digest, 'meta.json');
}

function writeConfig(text: string): void {
  mkdirSync(targets.dockerConfig, { recursive: true });
  writeFileSync(config, text);
}

/** A context of the user's own. */
function makeContext(name: string): void {
  mkdirSync(join(metaOf(name), '..'), { recursive: true });
  writeFileSync(metaOf(name), JSON.stringify({ Name: name, Endpoints: { docker: { Host: 'tcp://x' } } }));
}

async function startSystemEngine(): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(targets.systemSocket, resolve));
  onTestFinished(() => void server.close());
}

const selected = () => JSON.parse(readFileSync(config, 'utf8')).currentContext;

test.each([
  ['that is as it was', '{"auths":{}}'],
  ['that was never made', undefined],
])(
  'the draft left by a service killed while writing a configuration %s is removed with the context',
  async (_, text) => {
    await provideContext(ENDPOINT, targets);
    if (text === undefined) rmSync(config);
    else writeConfig(text);
    const draft = join(targets.dockerConfig, '.config.json.0123456789ab.tmp');
    writeFileSync(draft, '{');
    await withdrawContext(targets);
    expect(existsSync(draft)).toBe(false);
  },
);

test('a directory in place of a config.json that selects ours keeps the context until the file is back', async () => {
  writeConfig('{"auths":{}}');
  await provideContext(ENDPOINT, targets);
  const failed = { file: config, state: 'failed', message: expect.stringContaining('it is not a file') };
  const putAway = () => {
    renameSync(config, `${config}.aside`);
    mkdirSync(join(config, 'in the way'), { recursive: true });
  };
  const bringBack = () => {
    rmSync(config, { recursive: true });
    renameSync(`${config}.aside`, config);
  };
  putAway();
  expect(await releaseContext(targets)).toContainEqual(expect.objectContaining(failed));
  expect(await withdrawContext(targets)).toEqual([expect.objectContaining(failed)]);
  expect(existsSync(metaOf())).toBe(true);
  bringBack();

  // Put away right after the record said that the selection is given back.
  const record = () => readFileSync(metaOf(), 'utf8');
  const before = readFileSync(config, 'utf8');
  await releaseContext(targets);
  expect(record()).toContain('givenBack');
  writeConfig(before);
  putAway();
  expect(await withdrawContext(targets)).toEqual([expect.objectContaining(failed)]);
  expect(existsSync(metaOf())).toBe(true);
  bringBack();
  expect((await withdrawContext(targets)).map(({ state }) => state)).toEqual(['clean', 'clean']);
  expect(readFileSync(config, 'utf8')).toBe('{"auths":{}}');
  expect(existsSync(metaOf())).toBe(false);
});

test.runIf(process.platform !== 'win32')('a pipe in place of config.json is reported, and blocks nothing', async () => {
  mkdirSync(targets.dockerConfig, { recursive: true });
  execFileSync('mkfifo', [config]);
  const [made, chosen] = await provideContext(ENDPOINT, targets);
  expect(made).toMatchObject({ state: 'managed' });
  expect(chosen).toMatchObject({
    file: config,
    state: 'failed',
    message: `could not open ${config}: it is a named pipe, not a file`,
  });
  expect((await withdrawContext(targets)).map(({ state }) => state)).toEqual(['clean', 'clean']);
  expect(statSync(config).isFIFO()).toBe(true);
});

test.runIf(process.platform !== 'win32')(
  'does not write through a .docker link into a world-writable directory',
  async () => {
    const open = temporaryDirectory();
    chmodSync(open, 0o777);
    writeFileSync(join(open, 'config.json'), '{}');
    rmSync(targets.dockerConfig, { recursive: true, force: true });
    symlinkSync(open, targets.dockerConfig);
    const outcomes = await provideContext(ENDPOINT, targets);
    expect(outcomes).toMatchObject([
      { state: 'failed', message: expect.stringContaining(`${open} can be written by other users`) },
    ]);
    expect(readdirSync(open)).toEqual(['config.json']);
  },
);

describe('the docker context', () => {
  test('is read by the docker command line, and selected', async () => {
    const outcomes = await provideContext(ENDPOINT, targets);
    expect(outcomes.map(({ state, file }) => [state, file])).toEqual([
      ['managed', metaOf()],
      ['managed', config],
    ]);
    expect(JSON.parse(readFileSync(metaOf(), 'utf8'))).toMatchObject({
      Name: 'rdctl',
      Metadata: { Description: 'The moby engine of rdctl' },
      Endpoints: { docker: { Host: ENDPOINT, SkipTLSVerify: false } },
    });
    expect(selected()).toBe('rdctl');
    expect(statSync(config).mode & 0o777).toBe(0o600);
  });

  test('follows the endpoint, and otherwise stays unchanged', async () => {
    await provideContext(ENDPOINT, targets);
    const before = statSync(metaOf(), { bigint: true });
    await provideContext(ENDPOINT, targets);
    expect(statSync(metaOf(), { bigint: true }).ino).toBe(before.ino);
    await provideContext('unix:///other.sock', targets);
    expect(readFileSync(metaOf(), 'utf8')).toContain('unix:///other.sock');
    await withdrawContext(targets);
    expect(existsSync(targets.dockerConfig)).toBe(false);
  });

  test('is removed with everything that was created for it', async () => {
    await provideContext(ENDPOINT, targets);
    await withdrawContext(targets);
    expect(readdirSync(targets.home)).toEqual(['.local']);
    expect((await withdrawContext(targets)).map(({ state }) => state)).toEqual(['clean']);
  });

  test('has the name of the compatible application in drop-in mode', async () => {
    targets = testTargets({ dropIn: true });
    await provideContext(ENDPOINT, targets);
    expect(metaOf('rancher-desktop')).toContain('b547d66a5de60e5f0843aba28283a8875c2ad72e99ba076060ef9ec7c09917c8');
    expect(existsSync(metaOf('rancher-desktop'))).toBe(true);
  });
});

describe('foreign configuration', () => {
  test.each([
    '{\n\t"auths": {\n\t\t"registry.example.com": {}\n\t},\n\t"credsStore": "secret"\n}',
    '{"currentContext":"default"}\n',
    '{ "currentContext" : "" , "a": 1 }',
    '{}',
  ])('is unchanged byte for byte afterwards: %j', async (text) => {
    writeConfig(text);
    chmodSync(config, 0o640);
    mkdirSync(join(targets.dockerConfig, 'contexts', 'meta', 'abc'), { recursive: true });
    await provideContext(ENDPOINT, targets);
    expect(selected()).toBe('rdctl');
    expect(statSync(config).mode & 0o777).toBe(0o640);
    await withdrawContext(targets);
    expect(readFileSync(config, 'utf8')).toBe(text);
    expect(readdirSync(join(targets.dockerConfig, 'contexts', 'meta'))).toEqual(['abc']);
  });

  test('a context selected by the user stays selected', async () => {
    makeContext('work');
    writeConfig('{"currentContext":"work"}');
    const [made, left] = await provideContext(ENDPOINT, targets);
    expect(made).toMatchObject({ state: 'managed' });
    expect(left).toMatchObject({ state: 'left', message: 'the context work is selected there' });
    await withdrawContext(targets);
    expect(readFileSync(config, 'utf8')).toBe('{"currentContext":"work"}');
  });

  test('a selected context that is gone is no choice: ours is selected, and a system engine stays the default', async () => {
    makeContext('work');
    writeConfig('{"currentContext":"work"}');
    await provideContext(ENDPOINT, targets);
    rmSync(join(metaOf('work'), '..'), { recursive: true });
    await provideContext(ENDPOINT, targets);
    expect(selected()).toBe('rdctl');
    await withdrawContext(targets);
    expect(readFileSync(config, 'utf8')).toBe('{"currentContext":"work"}');
    await startSystemEngine();
    expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({ state: 'left' });
    expect(readFileSync(config, 'utf8')).toBe('{"currentContext":"work"}');
  });

  test('a user who switches to default or another context is not switched back', async () => {
    makeContext('work');
    writeConfig('{}');
    await provideContext(ENDPOINT, targets);
    for (const choice of ['{}', '{"currentContext":"work"}']) {
      writeConfig(choice);
      expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({ state: 'left' });
      expect(readFileSync(config, 'utf8')).toBe(choice);
    }
    await withdrawContext(targets);
    await provideContext(ENDPOINT, targets);
    expect(selected()).toBe('work');
  });

  test('a system engine stays the default', async () => {
    await startSystemEngine();
    expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({
      state: 'left',
      message: expect.stringContaining('docker context use rdctl'),
    });
    expect(existsSync(config)).toBe(false);
  });

  test('a context with our name that we did not create is neither changed nor removed', async () => {
    const text = JSON.stringify({ Name: 'rdctl', Metadata: {}, Endpoints: {} });
    mkdirSync(join(metaOf(), '..'), { recursive: true });
    writeFileSync(metaOf(), text);
    expect(await provideContext(ENDPOINT, targets)).toMatchObject([{ state: 'left' }]);
    expect(await withdrawContext(targets)).toEqual([]);
    expect(readFileSync(metaOf(), 'utf8')).toBe(text);
  });

  test.each(['{"currentContext": ', '[]', '{"currentContext":1}'])('%s is left alone with a reason', async (text) => {
    writeConfig(text);
    expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({
      state: 'failed',
      message: expect.stringContaining('the configuration of docker was not changed'),
    });
    expect(readFileSync(config, 'utf8')).toBe(text);
  });

  test('a linked config.json is changed in place; a link loop is refused', async () => {
    mkdirSync(targets.dockerConfig, { recursive: true });
    const real = join(targets.home, 'docker-config.json');
    writeFileSync(real, '{"a":1}');
    symlinkSync('../docker-config.json', config);
    await provideContext(ENDPOINT, targets);
    expect(JSON.parse(readFileSync(real, 'utf8'))).toEqual({ a: 1, currentContext: 'rdctl' });
    await withdrawContext(targets);
    expect(readFileSync(real, 'utf8')).toBe('{"a":1}');

    targets = testTargets();
    mkdirSync(targets.dockerConfig, { recursive: true });
    symlinkSync('config.json', join(targets.dockerConfig, 'config.json'));
    expect(await provideContext(ENDPOINT, targets)).toMatchObject([{ state: 'managed' }, { state: 'failed' }]);
  });
});

test('a context that cannot be deselected is not removed, because docker could not connect any more', async () => {
  writeConfig('{}');
  await provideContext(ENDPOINT, targets);
  writeConfig('{"currentContext":"rdctl"');
  expect(await withdrawContext(targets)).toMatchObject([{ state: 'failed' }]);
  expect(existsSync(metaOf())).toBe(true);
});

describe('a stopped engine', () => {
  const dockerLogin = '{\n\t"auths": {\n\t\t"registry.example.com": {}\n\t}\n}';

  const texts = [dockerLogin, '{"currentContext":"default"}\n', '{ "currentContext" : "" , "a": 1 }', '{}', '', ' \n'];
  test.each([...texts, '{ "currentContext" : "gone" }'])(
    'gives the selection back and takes it again, twice, byte for byte: %j',
    async (text) => {
      writeConfig(text);
      for (const _ of [1, 2]) {
        await provideContext(ENDPOINT, targets);
        expect(selected()).toBe('rdctl');
        expect((await releaseContext(targets)).map(({ state, file }) => [state, file])).toEqual([
          ['managed', metaOf()],
          ['clean', config],
        ]);
        expect(readFileSync(config, 'utf8')).toBe(text);
        expect(JSON.parse(readFileSync(metaOf(), 'utf8')).Endpoints.docker.Host).toBe(ENDPOINT);
      }
      await withdrawContext(targets);
      expect(readFileSync(config, 'utf8')).toBe(text);
      expect(existsSync(metaOf())).toBe(false);
    },
  );

  test('removes our config.json, and leaves nothing once the context is gone', async () => {
    for (const _ of [1, 2]) {
      await provideContext(ENDPOINT, targets);
      await releaseContext(targets);
      expect(existsSync(config)).toBe(false);
    }
    await provideContext(ENDPOINT, targets);
    await withdrawContext(targets);
    expect(existsSync(targets.dockerConfig)).toBe(false);
  });

  test('changes nothing when it stops again or never ran', async () => {
    expect(await releaseContext(targets)).toEqual([]);
    writeConfig('{}');
    await provideContext(ENDPOINT, targets);
    await releaseContext(targets);
    const inodes = () => [metaOf(), config].map((file) => statSync(file, { bigint: true }).ino);
    const before = inodes();
    await releaseContext(targets);
    expect(inodes()).toEqual(before);
  });

  test('keeps what the user has edited in the meantime', async () => {
    await provideContext(ENDPOINT, targets);
    writeConfig('{"auths":{},"currentContext":"rdctl"}');
    await releaseContext(targets);
    expect(readFileSync(config, 'utf8')).toBe('{"auths":{}}');
    writeConfig(dockerLogin);
    await provideContext(ENDPOINT, targets);
    expect(selected()).toBe('rdctl');
    await releaseContext(targets);
    expect(readFileSync(config, 'utf8')).toBe(dockerLogin);
  });

  test.each(['while it runs', 'while it is stopped'])(
    'keeps another choice made %s, also at the next start',
    async (when) => {
      makeContext('work');
      writeConfig('{}');
      await provideContext(ENDPOINT, targets);
      if (when === 'while it is stopped') await releaseContext(targets);
      const choice = '{"currentContext":"work"}';
      writeConfig(choice);
      if (when === 'while it runs') await releaseContext(targets);
      expect(readFileSync(config, 'utf8')).toBe(choice);
      expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({ state: 'left' });
      expect(readFileSync(config, 'utf8')).toBe(choice);
      // Switching back to default is a choice, too.
      await releaseContext(targets);
      writeConfig('{}');
      expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({ state: 'left' });
      expect(readFileSync(config, 'utf8')).toBe('{}');
    },
  );

  test('gives a selection made by the user back to a system engine, and selects it again', async () => {
    await startSystemEngine();
    await provideContext(ENDPOINT, targets);
    const byHand = '{ "currentContext": "rdctl", "auths": {} }';
    writeConfig(byHand);
    for (const _ of [1, 2]) {
      await releaseContext(targets);
      expect(selected()).toBe('default');
      await provideContext(ENDPOINT, targets);
      expect(readFileSync(config, 'utf8')).toBe(byHand);
    }
  });

  test('leaves the default to a system engine installed in the meantime', async () => {
    writeConfig('{}');
    await provideContext(ENDPOINT, targets);
    await releaseContext(targets);
    await startSystemEngine();
    expect((await provideContext(ENDPOINT, targets))[1]).toMatchObject({ state: 'left' });
    expect(readFileSync(config, 'utf8')).toBe('{}');
  });

  test.each(['selected', 'given back'])(
    'is recognized after a crash at any write while the context was %s',
    async (what) => {
      for (let survives = 0; ; survives += 1) {
        targets = testTargets();
        config = join(targets.dockerConfig, 'config.json');
        writeConfig('{"a":1}');
        if (what === 'given back') await provideContext(ENDPOINT, targets);
        let writes = 0;
        const rename: typeof editOperations.rename = async (from, to) => {
          writes += 1;
          if (writes > survives) throw new Error('killed');
          await editOperations.rename(from, to);
        };
        const around = { operations: { ...editOperations, rename } };
        await (what === 'selected' ? provideContext(ENDPOINT, targets, around) : releaseContext(targets, around));
        await provideContext(ENDPOINT, targets);
        expect([survives, selected()]).toEqual([survives, 'rdctl']);
        await releaseContext(targets);
        expect(readFileSync(config, 'utf8')).toBe('{"a":1}');
        if (writes <= survives) break;
      }
    },
  );

  test('reports what cannot be given back, and leaves a foreign context alone', async () => {
    writeConfig('{}');
    await provideContext(ENDPOINT, targets);
    writeConfig('{"currentContext":"rdctl"');
    expect(await releaseContext(targets)).toMatchObject([{ state: 'managed' }, { state: 'failed', file: config }]);
    writeConfig('{"currentContext":"rdctl"}');
    const foreign = JSON.stringify({ Name: 'rdctl', Metadata: {}, Endpoints: {} });
    writeFileSync(metaOf(), foreign);
    expect(await releaseContext(targets)).toEqual([]);
    expect([selected(), readFileSync(metaOf(), 'utf8')]).toEqual(['rdctl', foreign]);
  });
});
