import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { MAX_UNKNOWN_KEYS } from '../../src/settings/unknown-keys.ts';
import { unknownKeys, validate } from '../../src/settings/validate.ts';
import { type Circumstances, context, lines } from '../helpers/settings-circumstances.ts';

const VM = 'experimental.virtualMachine';
const WEB = 'experimental.containerEngine.webAssembly.enabled';

describe('invalid values', () => {
  test.each<[string, JsonValue, string]>([
    ['application.debug', 'yes', 'Invalid value for "application.debug": <"yes">'],
    ['application.debug', 1, 'Invalid value for "application.debug": <1>'],
    ['application.debug', null, 'Invalid value for "application.debug": <null>'],
    ['virtualMachine.memoryInGB', 'carl', 'Invalid value for "virtualMachine.memoryInGB": <"carl">'],
    ['virtualMachine.memoryInGB', 2.5, 'Invalid value for "virtualMachine.memoryInGB": <2.5>'],
    ['virtualMachine.memoryInGB', 0, 'Invalid value for "virtualMachine.memoryInGB": <0>'],
    ['virtualMachine.numberCPUs', 1e300, 'Invalid value for "virtualMachine.numberCPUs": <1e+300>'],
    ['kubernetes.port', 65_536, 'Invalid value for "kubernetes.port": <65536>'],
    ['kubernetes.port', { a: [1] }, 'Invalid value for "kubernetes.port": <{"a":[1]}>'],
    ['diagnostics.connectivity.timeout', 0, 'Invalid value for "diagnostics.connectivity.timeout": <0>'],
    [
      'containerEngine.name',
      'beefalo',
      'Invalid value for "containerEngine.name": <"beefalo">; must be one of ["containerd","moby","docker"]',
    ],
    [
      'containerEngine.name',
      5,
      'Invalid value for "containerEngine.name": <5>; must be one of ["containerd","moby","docker"]',
    ],
    [
      'virtualMachine.mount.type',
      'nfs',
      'Invalid value for "virtualMachine.mount.type": <"nfs">; must be one of ["9p","reverse-sshfs","virtiofs"]',
    ],
    [
      'application.theme',
      'blue',
      'Invalid value for "application.theme": <"blue">; must be one of ["system","light","dark"]',
    ],
    ['images.namespace', [], 'Invalid value for "images.namespace": <[]>'],
    [
      'containerEngine.allowedImages.patterns',
      'a',
      'Invalid value for "containerEngine.allowedImages.patterns": <"a">',
    ],
    [
      'containerEngine.allowedImages.patterns',
      ['a', 1],
      'Invalid value for "containerEngine.allowedImages.patterns": <["a",1]>',
    ],
    [
      'containerEngine.allowedImages.patterns',
      ['b', 'a', 'b', 'a', 'c'],
      'field "containerEngine.allowedImages.patterns" has duplicate entries: "a", "b"',
    ],
    [
      'containerEngine.allowedImages.patterns',
      ['', 'x', ' '],
      'field "containerEngine.allowedImages.patterns" has duplicate entries: "", " "',
    ],
    [
      'containerEngine.allowedImages.patterns',
      ['', 'b', '', 'B', 'b', 'a', 'a', ''],
      'field "containerEngine.allowedImages.patterns" has duplicate entries: "", "", "", "a", "b"',
    ],
    ['portForwarding', 'bob', 'Setting "portForwarding" should wrap an inner object, but got <bob>.'],
    ['kubernetes.options', null, 'Setting "kubernetes.options" should wrap an inner object, but got <null>.'],
    ['kubernetes', [], 'Setting "kubernetes" should wrap an inner object, but got <[]>.'],
    ['diagnostics.mutedChecks', 'x', 'Proposed field "diagnostics.mutedChecks" should be an object, got <x>.'],
    ['diagnostics.mutedChecks', ['x', 'y'], 'Proposed field "diagnostics.mutedChecks" should be an object, got <x,y>.'],
    ['diagnostics.mutedChecks', [], 'Proposed field "diagnostics.mutedChecks" should be an object, got <>.'],
    ['diagnostics.mutedChecks', null, 'Proposed field "diagnostics.mutedChecks" should be an object, got <null>.'],
    ['diagnostics.mutedChecks', { A: 'x' }, 'Invalid value for "diagnostics.mutedChecks.A": <"x">'],
    [
      'application.extensions.allowed.list',
      ['a/b', 'A B'],
      'application.extensions.allowed.list: "A B" does not describe an image reference',
    ],
    ['application.extensions.installed', 'x', 'application.extensions.installed: "x" is not a valid mapping'],
    ['application.extensions.installed', { 'A b': '1' }, 'application.extensions.installed: "A b" is an invalid name'],
    ['application.extensions.installed', { a: 1 }, 'application.extensions.installed: "a" has non-string tag "1"'],
    ['application.extensions.installed', { a: '-' }, 'application.extensions.installed: "a" has invalid tag "-"'],
    [`${VM}.diskSize`, '10 stuff', `Invalid value for "${VM}.diskSize": <"10 stuff">`],
    [`${VM}.diskSize`, 200, `Invalid value for "${VM}.diskSize": <200>`],
    [`${VM}.diskSize`, '50GiB', `Cannot decrease "${VM}.diskSize" from 100GiB to 50GiB`],
    ['version', 16, 'Changing field "version" via the API isn\'t supported.'],
    ['virtualMachine.type', 'vz', 'Changing field "virtualMachine.type" via the API isn\'t supported.'],
    ['virtualMachine.useRosetta', 'yes', 'Changing field "virtualMachine.useRosetta" via the API isn\'t supported.'],
    ['WSL.integrations', { a: true }, 'Changing field "WSL.integrations" via the API isn\'t supported.'],
    [`${VM}.proxy.password`, 'secret', `Changing field "${VM}.proxy.password" via the API isn't supported.`],
    [
      `${VM}.mount.9p.cacheMode`,
      'none',
      `Setting ${VM}.mount.9p.cacheMode can only be changed when virtualMachine.mount.type is "9p".`,
    ],
    ['kubernetes.version', 'karl', 'Kubernetes version "karl" not found.'],
    ['kubernetes.version', 1.3, 'Kubernetes version "1.3" not found.'],
    [
      'experimental.kubernetes.options.spinkube',
      true,
      'Setting experimental.kubernetes.options.spinkube can only be set when experimental.container-engine.web-assembly.enabled is set as well.',
    ],
  ])('%s: %j', (path, value, line) => {
    expect(lines({ [path]: value })).toEqual([line]);
  });

  test('a value of a wrong type also breaks the rules between settings', () => {
    expect(lines({ 'experimental.kubernetes.options.spinkube': 'yes' })).toEqual([
      'Invalid value for "experimental.kubernetes.options.spinkube": <"yes">',
      'Setting experimental.kubernetes.options.spinkube can only be set when experimental.container-engine.web-assembly.enabled is set as well.',
    ]);
  });

  test.each<[string, string, number | undefined, boolean]>([
    ['is refused where the disk is as large', '50GiB', 100 * 2 ** 30, false],
    ['is refused where the size of the disk is not known', '50GiB', undefined, false],
    ['is taken while there is no disk', '50GiB', 0, true],
    ['is taken where the disk has not come that far', '60GiB', 60 * 2 ** 30, true],
    ['is refused below the disk', '59GiB', 60 * 2 ** 30, false],
    ['is refused below the setting, where the disk is larger than that', '99GiB', 200 * 2 ** 30, false],
  ])('a smaller disk %s', (_what, size, diskBytes, taken) => {
    const payload = { experimental: { virtualMachine: { diskSize: size } } };
    const issues = validate(payload, { ...context({}), ...(diskBytes === undefined ? {} : { diskBytes }) });
    expect(issues.map(({ code }) => code)).toEqual(taken ? [] : ['decrease']);
    if (!taken) expect(issues[0]?.expected).toBe(`at least "${diskBytes === 60 * 2 ** 30 ? '60GiB' : '100GiB'}"`);
  });

  test.each<[string, JsonValue]>([
    ['WSL.integrations', { a: 1 }],
    [`${VM}.proxy.port`, 0],
  ])('%s: %j on Windows', (path, value) => {
    expect(lines({ [path]: value }, { platform: 'win32' })).toHaveLength(1);
  });

  test('wrong proxy exceptions are reported together, and a secret is not repeated', () => {
    const payload = { [`${VM}.proxy.noproxy`]: ['10.0.0.0/8', 'a b', '1.2.3.4/40'], [`${VM}.proxy.password`]: 12_345 };
    expect(lines(payload, { platform: 'win32' })).toEqual([
      `field "${VM}.proxy.noproxy" has invalid entries (must be IP addresses, CIDR subnets, or domain names): "a b", "1.2.3.4/40"`,
      `Invalid value for "${VM}.proxy.password": <"***">`,
    ]);
  });

  test('an installed extension cannot be removed here; one that is not installed is not an error', () => {
    const payload = { 'application.extensions.installed': { a: null } };
    expect(lines(payload, { current: { 'application.extensions.installed': { a: '1' } } })).toEqual([
      'application.extensions.installed: "a" has non-string tag "null"',
    ]);
    expect(lines(payload)).toEqual([]);
  });

  test('a wrong pattern is reported even with other errors, and all errors come in payload order', () => {
    expect(
      lines({ 'kubernetes.port': 0, 'application.extensions.allowed.list': ['#'], 'application.debug': 3 }),
    ).toEqual([
      'Invalid value for "kubernetes.port": <0>',
      'application.extensions.allowed.list: "#" does not describe an image reference',
      'Invalid value for "application.debug": <3>',
    ]);
  });
});

describe('valid values', () => {
  test.each<[string, JsonValue, Circumstances?]>([
    ['version', 19],
    ['virtualMachine.type', 'qemu'],
    ['WSL.integrations', {}],
    ['WSL.integrations', { gone: null }],
    ['WSL.integrations', { Debian: true, Old: null }, { platform: 'win32' }],
    ['diagnostics.mutedChecks', { A: true, B: null }],
    ['containerEngine.allowedImages.patterns', ['a', 'A', '']],
    ['application.extensions.installed', { 'ghcr.io/a/b': '1.0' }],
    [`${VM}.diskSize`, '102400 mib'],
    [`${VM}.diskSize`, '1TB'],
    [`${VM}.mount.9p.msizeInKib`, 128],
    ['kubernetes.version', ''],
    ['kubernetes.version', '1.30.2'],
    ['kubernetes.version', '1.30.2', { versions: ['1.30.2'] }],
    ['experimental.kubernetes.options.spinkube', true, { current: { 'kubernetes.enabled': false } }],
    ['experimental.kubernetes.options.spinkube', true, { current: { [WEB]: true } }],
    ['unknown', 1],
    ['kubernetes.constructor', 1],
  ])('%s: %j', (path, value, circumstances) => {
    expect(lines({ [path]: value }, circumstances)).toEqual([]);
  });
});

describe('locks', () => {
  const locked = {
    version: true,
    containerEngine: { name: true, allowedImages: { patterns: true } },
    WSL: { integrations: {} },
    diagnostics: { mutedChecks: { A: true } },
  };
  test('a difference is refused, the current value is not', () => {
    expect(lines({ 'containerEngine.name': 'containerd', version: 19 }, { locked })).toEqual([
      'field "containerEngine.name" is locked',
    ]);
    expect(lines({ 'containerEngine.name': 'moby', 'containerEngine.allowedImages.patterns': [] }, { locked })).toEqual(
      [],
    );
    expect(lines({ 'containerEngine.allowedImages.enabled': true }, { locked })).toEqual([]);
  });
  test('a map is locked as a whole; entries with their current value are accepted', () => {
    const current = { 'diagnostics.mutedChecks': { A: true, B: false } };
    expect(lines({ 'diagnostics.mutedChecks': { B: false } }, { locked, current })).toEqual([]);
    expect(lines({ 'diagnostics.mutedChecks': { B: null } }, { locked, current })).toEqual([
      'field "diagnostics.mutedChecks" is locked',
    ]);
    expect(lines({ 'WSL.integrations': { a: true } }, { locked, platform: 'win32' })).toEqual([
      'field "WSL.integrations" is locked',
    ]);
  });
  test('a wrong value of a setting with extra rules is reported as locked too, any other only as wrong', () => {
    const locks = { locked: { containerEngine: { name: true }, kubernetes: { port: true } } };
    expect(lines({ 'containerEngine.name': 'x' }, locks)).toEqual([
      expect.stringContaining('must be one of'),
      'field "containerEngine.name" is locked',
    ]);
    expect(lines({ 'kubernetes.port': 'x' }, locks)).toEqual(['Invalid value for "kubernetes.port": <"x">']);
  });
  test('a locked value that conflicts with other settings is reported as locked too', () => {
    const current = {
      'containerEngine.name': 'containerd',
      'containerEngine.mobyStorageDriver': 'classic',
      'experimental.containerEngine.webAssembly.enabled': true,
    };
    const locks = { locked: { containerEngine: { name: true } }, current };
    expect(lines({ 'containerEngine.name': 'moby' }, locks)).toEqual([
      'Cannot switch to moby container engine with classic storage when WebAssembly is enabled.',
      'field "containerEngine.name" is locked',
    ]);
  });
});

test('issues have a pointer, a path, and whether they prevent a start', () => {
  const payload = { diagnostics: { mutedChecks: { 'a/b': 3 } }, containerEngine: { name: 'x' } };
  expect(validate(payload, context({}))).toEqual([
    {
      code: 'type',
      pointer: '/diagnostics/mutedChecks/a~1b',
      path: 'diagnostics.mutedChecks',
      message: 'Invalid value for "diagnostics.mutedChecks.a/b": <3>',
      fatal: false,
      expected: 'true, false or null',
    },
    expect.objectContaining({
      code: 'enum',
      pointer: '/containerEngine/name',
      path: 'containerEngine.name',
      fatal: true,
    }),
  ]);
});

test('unknown keys are reported with the intended name', () => {
  const payload: JsonObject = JSON.parse(
    '{"version":19,"kubernets":{"x":1},"kubernetes":{"versoin":"1","options":{"treafik":true}},"memoryInGB":2,"toString":1,"__proto__":{"a":1},"diagnostics":{"mutedChecks":{"any":true}}}',
  );
  expect(unknownKeys(payload)).toEqual([
    { pointer: '/kubernets', path: 'kubernets', suggestion: 'kubernetes' },
    { pointer: '/kubernetes/versoin', path: 'kubernetes.versoin', suggestion: 'version' },
    { pointer: '/kubernetes/options/treafik', path: 'kubernetes.options.treafik', suggestion: 'traefik' },
    { pointer: '/memoryInGB', path: 'memoryInGB', suggestion: 'virtualMachine.memoryInGB' },
    { pointer: '/toString', path: 'toString' },
    { pointer: '/__proto__', path: '__proto__' },
  ]);
});

test('many unknown keys: the list is limited, and suggestions end earlier', () => {
  const flood = Object.fromEntries(Array.from({ length: 250_000 }, (_, index) => [`port${index}`, index]));
  for (const payload of [flood, { kubernetes: flood }] satisfies JsonObject[]) {
    const found = unknownKeys(payload);
    expect(found).toHaveLength(MAX_UNKNOWN_KEYS);
    expect(found.slice(0, 10).every(({ suggestion }) => suggestion !== undefined)).toBe(payload !== flood);
    expect(found.slice(100).some(({ suggestion }) => suggestion !== undefined)).toBe(false);
  }
});
