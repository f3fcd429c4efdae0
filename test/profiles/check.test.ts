import { describe, expect, test } from 'vitest';
import { ALL, checkProfile } from '../../profiles/check/check.ts';
import type { CheckCell, Effect, Verdict } from '../../profiles/check/finding.ts';
import type { Part } from '../../profiles/formats/format.ts';
import type { JsonObject } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import { RELEASES } from '../../src/settings/releases.ts';

function cellsOf(settings: JsonObject, part: Part = 'defaults'): CheckCell[] {
  return checkProfile([{ part, settings }], ALL);
}

function cellOf(cells: readonly CheckCell[], release: string, platform: Platform): CheckCell {
  const cell = cells.find((each) => each.release === release && each.platform === platform);
  if (!cell) throw new Error(`no cell ${release} ${platform}`);
  return cell;
}

/** `refused kubernetes.port` of one cell. */
function linesOf(cell: CheckCell): string[] {
  return cell.findings.map(({ effect, path }) => `${effect} ${path}`);
}

type Row = [settings: JsonObject, release: string, platform: Platform, lines: string[], part?: Part];

/** Each rule with what it accepts and what it rejects. */
function table(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    test.each(rows)('%j in %s on %s', (settings, release, platform, lines, part) => {
      const cell = cellOf(cellsOf(settings, part), release, platform);
      expect(linesOf(cell)).toEqual(lines);
      const effects = lines.map((line) => line.split(' ')[0]);
      const verdict: Verdict = effects.includes('refused')
        ? 'rejected'
        : effects.includes('ignored')
          ? 'partly'
          : 'accepted';
      expect(cell.verdict).toBe(verdict);
    });
  });
}

const vm = (settings: JsonObject): JsonObject => ({ experimental: { virtualMachine: settings } });

table('the version', [
  [{ version: 19 }, '1.24', 'linux', []],
  [{ version: 19 }, '1.23', 'linux', ['refused version']],
  [{ version: 6 }, '1.8', 'darwin', []],
  [{ version: 7 }, '1.8', 'darwin', ['refused version']],
  [{ version: 4 }, '1.8', 'win32', []],
  [{ version: 25 }, '1.24', 'win32', ['refused version']],
  [{}, '1.24', 'linux', ['refused version']],
  [{ images: { showAll: true } }, '1.24', 'win32', ['refused version']],
  // A registry key without any known value does not exist.
  [{}, '1.24', 'win32', ['ignored version']],
  [{ nothing: 1 }, '1.24', 'win32', ['ignored version']],
  [{ containers: { showAll: true } }, '1.11', 'win32', ['ignored version']],
  [{ version: '19' }, '1.24', 'linux', ['refused version']],
  [{ version: null }, '1.24', 'darwin', ['refused version']],
  [{ version: true }, '1.24', 'win32', ['refused version']],
  [{ version: 0 }, '1.24', 'linux', ['refused version']],
  [{ version: -3, images: 5 }, '1.24', 'linux', ['refused version']],
  [{ version: 9.5, extensions: {} }, '1.24', 'linux', ['changed version', 'ignored extensions']],
  [{ version: 9.5 }, '1.24', 'win32', ['changed version', 'refused version']],
]);

table('names', [
  [{ version: 19, kubernets: {} }, '1.24', 'linux', ['ignored kubernets']],
  [{ version: 19, Kubernetes: { enabled: false } }, '1.24', 'darwin', ['ignored Kubernetes']],
  [{ version: 19, Kubernetes: { Enabled: false } }, '1.24', 'win32', []],
  [{ version: 19, Images: { showAll: true }, images: {} }, '1.24', 'win32', ['ignored Images']],
  // Named as they are written, whether or not they were migrated.
  [{ version: 19, wsl: { integrations: { Ubuntu: 'on' } } }, '1.24', 'win32', ['refused wsl.integrations.Ubuntu']],
  [{ version: 18, wsl: { integrations: { Ubuntu: 'on' } } }, '1.24', 'win32', ['refused wsl.integrations.Ubuntu']],
  [{ version: 18, application: { theme: 'dark' } }, '1.23', 'linux', []],
  [{ version: 17, application: { theme: 'dark' } }, '1.22', 'linux', ['ignored application.theme']],
  [{ version: 10, containers: { showAll: false } }, '1.11', 'linux', ['ignored containers.showAll']],
  [{ version: 10, containers: { showAll: false } }, '1.12', 'linux', []],
  [{ version: 10, containers: { showAll: false } }, '1.11', 'win32', ['ignored containers.showAll']],
  [{ version: 19, constructor: {}, __proto__: {} }, '1.24', 'linux', ['ignored constructor']],
]);

table('older places', [
  [{ version: 14, ...vm({ type: 'qemu' }) }, '1.18', 'darwin', []],
  [{ version: 18, ...vm({ type: 'qemu' }) }, '1.23', 'linux', ['ignored experimental.virtualMachine.type']],
  [{ application: { debug: true } }, '1.11', 'linux', []],
  [{ application: { debug: true } }, '1.12', 'linux', ['refused version']],
  [{ version: 4, telemetry: false }, '1.20', 'darwin', []],
  [{ version: 4, telemetry: false }, '1.20', 'win32', ['ignored telemetry']],
  [{ version: 4, kubernetes: { suppressSudo: true } }, '1.9', 'linux', []],
  [{ version: 6, application: { autoStart: true } }, '1.20', 'win32', []],
  [{ version: 8, extensions: { 'team/tool': '1.0' } }, '1.10', 'win32', ['ignored extensions']],
  [{ version: 8, extensions: { 'team/tool': '1.0' } }, '1.9', 'win32', []],
  [
    { version: 8, extensions: { 'team/tool': '1.0' } },
    '1.15',
    'linux',
    ['changed experimental.virtualMachine.networkingTunnel'],
  ],
  [{ version: 6, extensions: { 'team/tool:1': true } }, '1.8', 'linux', ['ignored extensions']],
  [{ version: 6, extensions: { 'team/tool:1': true } }, '1.14', 'linux', []],
  [{ version: 6, extensions: { 'a.b:5000/x:1': true } }, '1.14', 'linux', ['refused extensions.a.b:5000/x:1']],
  [{ version: 6, extensions: { 'a.b:5000/x:1': false } }, '1.14', 'linux', []],
  [{ version: 4, debug: true, application: { debug: false } }, '1.14', 'linux', ['ignored application.debug']],
]);

table('settings that ended', [
  [{ version: 10, virtualMachine: { hostResolver: true } }, '1.14', 'linux', []],
  [{ version: 13, virtualMachine: { hostResolver: true } }, '1.15', 'linux', []],
  [{ version: 13, virtualMachine: { hostResolver: 'on' } }, '1.15', 'linux', ['refused virtualMachine.hostResolver']],
  [{ version: 13, virtualMachine: { hostResolver: true } }, '1.16', 'linux', ['ignored virtualMachine.hostResolver']],
  [{ version: 13, virtualMachine: { hostResolver: true } }, '1.16', 'win32', ['ignored virtualMachine.hostResolver']],
  [{ version: 11, ...vm({ socketVMNet: true }) }, '1.14', 'darwin', []],
  // They moved before, and releases that had them migrated them.
  [{ version: 4, kubernetes: { hostResolver: false } }, '1.12', 'linux', []],
  [{ version: 4, kubernetes: { hostResolver: false } }, '1.16', 'linux', ['ignored kubernetes.hostResolver']],
  [{ version: 4, kubernetes: { hostResolver: false } }, '1.12', 'win32', ['ignored kubernetes.hostResolver']],
  [{ version: 4, kubernetes: { experimental: { socketVMNet: true } } }, '1.8', 'darwin', []],
  [
    { version: 5, virtualMachine: { experimental: { socketVMNet: 5 } } },
    '1.8',
    'darwin',
    ['refused virtualMachine.experimental.socketVMNet'],
  ],
  [
    { version: 13, ...vm({ socketVMNet: true }) },
    '1.15',
    'darwin',
    ['ignored experimental.virtualMachine.socketVMNet'],
  ],
  [{ version: 6, ...vm({ mount: { type: '9p', '9p': { msizeInKB: 64 } } }) }, '1.8', 'linux', []],
  [
    { version: 6, ...vm({ mount: { '9p': { msizeInKB: 64 } } }) },
    '1.14',
    'linux',
    ['ignored experimental.virtualMachine.mount.9p.msizeInKB'],
  ],
  [
    { version: 10, containerEngine: { allowedImages: { locked: true } } },
    '1.14',
    'linux',
    ['ignored containerEngine.allowedImages.locked'],
  ],
]);

const FREEZE = 'changed experimental.containerEngine.webAssembly.enabled';
table('what a migration adds and replaces', [
  [{ version: 10 }, '1.13', 'linux', [FREEZE], 'locked'],
  [{ version: 10 }, '1.12', 'linux', [], 'locked'],
  [{ version: 11 }, '1.14', 'linux', [], 'locked'],
  [
    { version: 10, experimental: { containerEngine: { webAssembly: { enabled: true } } } },
    '1.14',
    'linux',
    [],
    'locked',
  ],
  [{ version: 10 }, '1.14', 'linux', [], 'defaults'],
  [{ version: 16 }, '1.22', 'win32', ['changed containerEngine.mobyStorageDriver'], 'defaults'],
  [{ version: 16 }, '1.22', 'win32', [], 'locked'],
  [{ version: 17 }, '1.22', 'win32', [], 'defaults'],
  [{ version: 16, containerEngine: { mobyStorageDriver: 'classic' } }, '1.22', 'linux', [], 'defaults'],
  [{ version: 6, application: { pathManagementStrategy: 'notset' } }, '1.8', 'linux', []],
  [
    { version: 6, application: { pathManagementStrategy: 'notset' } },
    '1.9',
    'win32',
    ['changed application.pathManagementStrategy'],
  ],
  [
    { version: 8, application: { pathManagementStrategy: 'notset' } },
    '1.9',
    'linux',
    ['refused application.pathManagementStrategy'],
  ],
  [{ version: 13 }, '1.15', 'linux', []],
  [{ version: 12 }, '1.15', 'linux', ['changed experimental.virtualMachine.networkingTunnel']],
  [{ version: 12, ...vm({ networkingTunnel: true }) }, '1.15', 'linux', []],
]);

table('types', [
  [{ version: 19, kubernetes: { port: '6443' } }, '1.24', 'linux', ['refused kubernetes.port']],
  [{ version: 19, kubernetes: { port: '6443' } }, '1.24', 'win32', ['refused kubernetes.port']],
  [{ version: 19, kubernetes: { enabled: 1 } }, '1.24', 'darwin', ['refused kubernetes.enabled']],
  [{ version: 19, kubernetes: { enabled: 1 } }, '1.24', 'win32', []],
  [{ version: 19, kubernetes: { port: true } }, '1.24', 'win32', []],
  [{ version: 19, kubernetes: { port: 6443.5 } }, '1.24', 'linux', []],
  [{ version: 19, kubernetes: { port: 6443.5 } }, '1.24', 'win32', ['refused kubernetes.port']],
  [{ version: 19, kubernetes: 5 }, '1.24', 'linux', ['refused kubernetes']],
  [{ version: 19, kubernetes: 5 }, '1.24', 'win32', ['refused kubernetes']],
  [{ version: 10, containers: 5 }, '1.11', 'linux', ['ignored containers']],
  [{ version: 19, images: { namespace: ['a'] } }, '1.24', 'linux', ['refused images.namespace']],
  [
    { version: 19, containerEngine: { allowedImages: { patterns: 'a' } } },
    '1.24',
    'linux',
    ['refused containerEngine.allowedImages.patterns'],
  ],
  [{ version: 19, containerEngine: { allowedImages: { patterns: 'a' } } }, '1.24', 'win32', []],
  [
    { version: 19, containerEngine: { allowedImages: { patterns: {} } } },
    '1.24',
    'win32',
    ['ignored containerEngine.allowedImages.patterns'],
  ],
  [
    { version: 19, containerEngine: { allowedImages: { patterns: {} } } },
    '1.24',
    'linux',
    ['refused containerEngine.allowedImages.patterns'],
  ],
  [
    { version: 19, containerEngine: { allowedImages: { patterns: [1] } } },
    '1.24',
    'linux',
    ['refused containerEngine.allowedImages.patterns'],
  ],
  [{ version: 19, diagnostics: { mutedChecks: { A: true } } }, '1.24', 'linux', []],
  [{ version: 19, diagnostics: { mutedChecks: { A: 1 } } }, '1.24', 'linux', ['refused diagnostics.mutedChecks.A']],
  [{ version: 19, diagnostics: { mutedChecks: { A: 1 } } }, '1.24', 'win32', []],
  [{ version: 19, diagnostics: { mutedChecks: { A: 2 } } }, '1.24', 'win32', ['refused diagnostics.mutedChecks.A']],
  [{ version: 19, diagnostics: { mutedChecks: { A: 'x' } } }, '1.24', 'win32', ['refused diagnostics.mutedChecks.A']],
  [{ version: 19, diagnostics: { mutedChecks: { A: {} } } }, '1.24', 'win32', ['ignored diagnostics.mutedChecks.A']],
  [{ version: 19, diagnostics: { mutedChecks: [] } }, '1.24', 'linux', ['refused diagnostics.mutedChecks']],
  [{ version: 19, diagnostics: { mutedChecks: ['x'] } }, '1.24', 'win32', ['refused diagnostics.mutedChecks']],
]);

table('a value that a migration would put a section over', [
  [
    { version: 16, containerEngine: 5 },
    '1.24',
    'linux',
    ['refused containerEngine', 'changed containerEngine.mobyStorageDriver'],
  ],
  [
    { version: 16, containerEngine: 5 },
    '1.24',
    'win32',
    ['refused containerEngine', 'changed containerEngine.mobyStorageDriver'],
  ],
]);

table('null', [
  [{ version: 19, kubernetes: null }, '1.24', 'linux', ['ignored kubernetes']],
  [{ version: 19, kubernetes: null }, '1.24', 'darwin', ['refused kubernetes']],
  [{ version: 19, kubernetes: null }, '1.24', 'win32', ['refused kubernetes']],
  [{ version: 19, kubernetes: { port: null } }, '1.24', 'linux', ['refused kubernetes.port']],
  [{ version: 19, diagnostics: { mutedChecks: null } }, '1.24', 'linux', ['refused diagnostics.mutedChecks']],
  [{ version: 19, diagnostics: { mutedChecks: { A: null } } }, '1.24', 'linux', []],
  [{ version: 19, diagnostics: { mutedChecks: { A: null } } }, '1.24', 'win32', ['refused diagnostics.mutedChecks.A']],
  [{ version: 19, nothing: null }, '1.24', 'darwin', ['ignored nothing']],
  [{ version: 18, debug: null }, '1.24', 'win32', ['ignored debug']],
  [{ debug: null }, '1.24', 'win32', ['ignored version']],
  // From its old path, a migration moves it to the new one.
  [{ version: 4, debug: null }, '1.24', 'linux', ['changed containerEngine.mobyStorageDriver', 'refused debug']],
  [{ version: 4, debug: null }, '1.24', 'darwin', ['refused debug', 'changed containerEngine.mobyStorageDriver']],
  [{ version: 4, debug: null }, '1.24', 'win32', ['ignored debug', 'changed containerEngine.mobyStorageDriver']],
]);

const NINE_P = 'experimental.virtualMachine.mount.9p.msizeInKib';
table('values', [
  [{ version: 19, kubernetes: { port: 65535 } }, '1.24', 'linux', []],
  [{ version: 19, kubernetes: { port: 65536 } }, '1.24', 'linux', ['refused kubernetes.port']],
  [{ version: 19, containerEngine: { name: 'containerd' } }, '1.24', 'linux', []],
  [{ version: 19, containerEngine: { name: 'podman' } }, '1.24', 'linux', ['refused containerEngine.name']],
  [{ version: 19, containerEngine: { name: 'docker' } }, '1.24', 'linux', ['ignored containerEngine.name']],
  [
    { version: 19, containerEngine: { allowedImages: { patterns: ['a', 'a'] } } },
    '1.24',
    'linux',
    ['refused containerEngine.allowedImages.patterns'],
  ],
  [{ version: 19, ...vm({ diskSize: '100GiB' }) }, '1.24', 'linux', []],
  [{ version: 19, ...vm({ diskSize: '1 TB' }) }, '1.24', 'linux', []],
  [{ version: 19, ...vm({ diskSize: '99GiB' }) }, '1.24', 'linux', ['refused experimental.virtualMachine.diskSize']],
  [{ version: 19, ...vm({ diskSize: '100GIB' }) }, '1.24', 'linux', ['refused experimental.virtualMachine.diskSize']],
  [{ version: 19, ...vm({ diskSize: 'much' }) }, '1.24', 'darwin', ['refused experimental.virtualMachine.diskSize']],
  [{ version: 19, ...vm({ mount: { '9p': { msizeInKib: 256 } } }) }, '1.24', 'linux', [`refused ${NINE_P}`]],
  [{ version: 19, ...vm({ mount: { '9p': { msizeInKib: 128 } } }) }, '1.24', 'linux', []],
  [
    { version: 19, virtualMachine: { mount: { type: '9p' } }, ...vm({ mount: { '9p': { msizeInKib: 256 } } }) },
    '1.24',
    'linux',
    [],
  ],
  [{ version: 14, ...vm({ mount: { type: '9p', '9p': { msizeInKib: 256 } } }) }, '1.18', 'linux', []],
  [{ version: 19, virtualMachine: { mount: { type: '9p' } } }, '1.24', 'darwin', ['refused virtualMachine.mount.type']],
  [{ version: 15, ...vm({ mount: { type: '9p' } }) }, '1.19', 'darwin', []],
  [{ version: 19, virtualMachine: { type: 'qemu', mount: { type: '9p' } } }, '1.24', 'darwin', []],
  [{ version: 15, virtualMachine: { useRosetta: true } }, '1.19', 'darwin', ['refused virtualMachine.useRosetta']],
  [{ version: 16, virtualMachine: { useRosetta: true } }, '1.20', 'darwin', []],
  [{ version: 19, application: { extensions: { allowed: { list: ['org/'] } } } }, '1.24', 'win32', []],
  [
    { version: 19, application: { extensions: { allowed: { list: ['/'] } } } },
    '1.24',
    'win32',
    ['refused application.extensions.allowed.list.0'],
  ],
  [
    { version: 19, experimental: { kubernetes: { options: { spinkube: true } } } },
    '1.24',
    'linux',
    ['refused experimental.kubernetes.options.spinkube'],
  ],
  [
    { version: 19, kubernetes: { enabled: false }, experimental: { kubernetes: { options: { spinkube: true } } } },
    '1.24',
    'linux',
    [],
  ],
]);

table('settings of another platform', [
  [{ version: 19, WSL: { integrations: {} } }, '1.24', 'linux', []],
  [{ version: 19, WSL: { integrations: { Ubuntu: true } } }, '1.24', 'win32', []],
  [{ version: 19, WSL: { integrations: { Ubuntu: true } } }, '1.24', 'linux', ['refused WSL.integrations']],
  [{ version: 19, virtualMachine: { memoryInGB: 2 } }, '1.24', 'win32', []],
  [{ version: 19, virtualMachine: { memoryInGB: 4 } }, '1.24', 'win32', ['refused virtualMachine.memoryInGB']],
  // The default was a different one.
  [{ version: 6, application: { adminAccess: true } }, '1.8', 'win32', []],
  [{ version: 6, application: { adminAccess: true } }, '1.9', 'win32', ['refused application.adminAccess']],
  [{ version: 6, application: { adminAccess: false } }, '1.8', 'win32', ['refused application.adminAccess']],
  [{ version: 19, virtualMachine: { type: 'vz' } }, '1.24', 'linux', ['refused virtualMachine.type']],
]);

table('the version of the cluster', [
  [{ version: 19, kubernetes: { version: '1.30.2' } }, '1.24', 'linux', [], 'locked'],
  [{ version: 19, kubernetes: { version: '' } }, '1.24', 'linux', [], 'locked'],
  [{ version: 19, kubernetes: { version: 'v1.30.2' } }, '1.24', 'linux', ['refused kubernetes.version'], 'locked'],
  [{ version: 19, kubernetes: { version: '1.30.2+k3s1' } }, '1.24', 'win32', ['refused kubernetes.version'], 'locked'],
  [{ version: 19, kubernetes: { version: '1.30' } }, '1.24', 'darwin', ['refused kubernetes.version'], 'locked'],
  [{ version: 19, kubernetes: { version: 'v1.30.2', enabled: false } }, '1.24', 'linux', [], 'locked'],
  [{ version: 19, kubernetes: { version: 'v1.30.2' } }, '1.24', 'linux', [], 'defaults'],
  [{ version: 19, kubernetes: { version: 'newest' } }, '1.24', 'linux', ['changed kubernetes.version'], 'defaults'],
  [{ version: 19, kubernetes: { version: 1.3 } }, '1.24', 'linux', ['refused kubernetes.version'], 'defaults'],
]);

const NAMESPACE = 'images.namespace';
table('what a form cannot hold', [
  [{ version: 19, images: { namespace: 'a\u0007' } }, '1.24', 'linux', []],
  [{ version: 19, images: { namespace: 'a\u0007' } }, '1.24', 'darwin', [`refused ${NAMESPACE}`]],
  [{ version: 19, images: { namespace: 'a\u0007' } }, '1.24', 'win32', []],
  [{ version: 19, images: { namespace: 'a\0' } }, '1.24', 'win32', [`refused ${NAMESPACE}`]],
  [{ version: 19, images: { namespace: '\ud800' } }, '1.24', 'darwin', [`refused ${NAMESPACE}`]],
  [{ version: 19, images: { namespace: 'é😀' } }, '1.24', 'darwin', []],
  [
    { version: 19, containerEngine: { allowedImages: { patterns: [''] } } },
    '1.24',
    'win32',
    ['refused containerEngine.allowedImages.patterns.0'],
  ],
  [{ version: 19, containerEngine: { allowedImages: { patterns: [''] } } }, '1.24', 'darwin', []],
  [
    { version: 19, diagnostics: { mutedChecks: { a: true, A: true } } },
    '1.24',
    'win32',
    ['refused diagnostics.mutedChecks.A'],
  ],
  [{ version: 19, diagnostics: { mutedChecks: { a: true, A: true } } }, '1.24', 'linux', []],
  [
    { version: 19, diagnostics: { mutedChecks: { ['k'.repeat(256)]: true } } },
    '1.24',
    'win32',
    [`refused diagnostics.mutedChecks["${'k'.repeat(80)}…"]`],
  ],
  [{ version: 19, diagnostics: { mutedChecks: { ['k'.repeat(255)]: true } } }, '1.24', 'win32', []],
  [
    { version: 19, diagnostics: { connectivity: { interval: -1 } } },
    '1.24',
    'win32',
    ['refused diagnostics.connectivity.interval', 'refused diagnostics.connectivity.interval'],
  ],
  [
    { version: 19, diagnostics: { connectivity: { interval: -1 } } },
    '1.24',
    'darwin',
    ['refused diagnostics.connectivity.interval'],
  ],
  // A release that does not know the setting ignores it.
  [{ version: 10, containers: { namespace: 'a\u0007' } }, '1.11', 'darwin', ['ignored containers.namespace']],
]);

describe('reasons', () => {
  const reasons = (settings: JsonObject, release: string, platform: Platform, effect: Effect) =>
    cellOf(cellsOf(settings), release, platform)
      .findings.filter((finding) => finding.effect === effect)
      .map(({ reason, suggestion }) => [reason, suggestion]);

  test('name the release that introduced a setting', () => {
    const settings = { version: 19, application: { theme: 'dark' }, virtualMachine: { type: 'qemu' } };
    expect(reasons(settings, '1.18', 'darwin', 'ignored')).toEqual([
      ['1.23 is the first release with it', undefined],
      ['1.19 is the first release with it; before, it is experimental.virtualMachine.type', undefined],
    ]);
    expect(reasons({ version: 14, ...vm({ type: 'qemu' }) }, '1.24', 'win32', 'ignored')).toEqual([
      [
        'it is virtualMachine.type since 1.19, and the registry is read by the names of the release before it migrates',
        undefined,
      ],
    ]);
    expect(reasons({ version: 19, virtualMachine: { hostResolver: true } }, '1.24', 'linux', 'ignored')).toEqual([
      ['1.15 was the last release with it', undefined],
    ]);
    // Releases that have it have it elsewhere.
    expect(reasons({ version: 4, kubernetes: { hostResolver: true } }, '1.12', 'win32', 'ignored')).toEqual([
      ['no release from 1.8 on has it', undefined],
    ]);
  });

  test('suggest the intended name and value', () => {
    const settings = { version: 19, kubernets: {}, containerEngine: { name: 'mobi' } };
    expect(reasons(settings, '1.24', 'linux', 'ignored')).toEqual([['no release has such a setting', 'kubernetes']]);
    expect(reasons(settings, '1.24', 'linux', 'refused')).toEqual([
      ['it cannot be "mobi"; expected one of "containerd", "moby"', 'moby'],
    ]);
  });

  test('are the same for every release that refuses the version', () => {
    const texts = new Set(
      cellsOf({ version: 16 }).flatMap(({ findings }) =>
        findings.filter(({ path }) => path === 'version').map(({ reason }) => reason),
      ),
    );
    expect([...texts]).toEqual(['settings version 16 requires 1.20 or later']);
  });

  test('never contain a secret', () => {
    const secret = 'hunter2';
    const password = (value: JsonObject['x']): JsonObject => ({
      version: 19,
      ...vm({ proxy: { password: value ?? null } }),
    });
    for (const value of [secret, [secret], { [secret]: secret }, `${secret}\0\u0001`]) {
      for (const { findings } of cellsOf(password(value))) {
        for (const { reason } of findings) expect(reason).not.toContain(secret);
      }
    }
  });
});

test('the newest release accepts the built-in defaults of each platform', () => {
  for (const platform of ['darwin', 'linux', 'win32'] as const) {
    const settings = structuredClone(defaultSettings({ platform, arch: 'arm64' }));
    expect(cellOf(checkProfile([{ part: 'locked', settings }], ALL), '1.24', platform).findings).toEqual([]);
  }
});

test('the table has a cell for each selected release and platform, in order', () => {
  const releases = RELEASES.filter(({ name }) => name === '1.9' || name === '1.24');
  const cells = checkProfile([{ part: 'locked', settings: { version: 8 } }], {
    releases,
    platforms: ['linux', 'win32'],
  });
  expect(cells.map(({ release, settingsVersion, platform }) => [release, settingsVersion, platform])).toEqual([
    ['1.9', 8, 'linux'],
    ['1.9', 8, 'win32'],
    ['1.24', 19, 'linux'],
    ['1.24', 19, 'win32'],
  ]);
  expect(cellsOf({ version: 8 })).toHaveLength(17 * 3);
});

test('both parts are checked, each with its own findings', () => {
  const cells = checkProfile(
    [
      { part: 'locked', settings: { version: 19, kubernetes: { version: 'v1.30.2' } } },
      { part: 'defaults', settings: { version: 19, kubernetes: { version: 'v1.30.2' }, x: 1 } },
    ],
    ALL,
  );
  const { findings, verdict } = cellOf(cells, '1.24', 'linux');
  expect(findings.map(({ part, path, effect }) => [part, path, effect])).toEqual([
    ['locked', 'kubernetes.version', 'refused'],
    ['defaults', 'x', 'ignored'],
  ]);
  expect(verdict).toBe('rejected');
});
