import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { type KubeEntry, withEntry, withoutEntry } from '../../../src/features/host-integration/kube-entries.ts';
import { HOSTILE_YAML } from '../../helpers/hostile-yaml.ts';
import { runs } from '../../helpers/rounds.ts';

const ENTRY: KubeEntry = {
  name: 'rdctl',
  cluster: { 'certificate-authority-data': 'Q0E=', server: 'https://127.0.0.1:6443' },
  user: { 'client-certificate-data': 'Q0VSVA==', 'client-key-data': 'S0VZ' },
};

/** As kubectl writes it. */
const KUBECTL = `apiVersion: v1
clusters:
- cluster:
    server: https://work.example:6443
  name: work
contexts:
- context:
    cluster: work
    user: me
  name: work
current-context: work
kind: Config
preferences: {}
users:
- name: me
  user:
    token: secret-token
`;

/** As a user writes it. */
const OWN = `# my clusters
kind: "Config"   # yes
apiVersion: v1

clusters: # the list
  # at work
  - name: work
    cluster: {server: 'https://work.example', insecure-skip-tls-verify: true}

  - { name: home, cluster: { server: "https://home.example" } } # at home
contexts:
  - name: work
    context: {cluster: work, user: me}   
# between
users:
  - name: me
    user:
      exec:
        args: ["a", 'b']
        command: |
          #!/bin/sh
          echo
# the end
`;

const EMPTY =
  'apiVersion: v1\nclusters: []\ncontexts: null\ncurrent-context: ""\nkind: Config\npreferences: {}\nusers:\n';

const texts: [string, string][] = [
  ['of kubectl', KUBECTL],
  ['of a person', OWN],
  ['that is empty', EMPTY],
  ['with nothing but its kind', 'kind: Config\n'],
  ['without a line end at the end', KUBECTL.trimEnd()],
  ['from Windows', KUBECTL.replaceAll('\n', '\r\n')],
  ['with a comment behind an empty list', EMPTY.replace('[]', '[] # none')],
  ['with a mark of a document', `---\n${KUBECTL}`],
];

function without(value: ReturnType<typeof parse>, key: 'clusters' | 'contexts' | 'users') {
  return (value[key] ?? []).filter((item: { name: string }) => item.name !== 'rdctl');
}

describe.each(texts)('a kubeconfig %s', (_, text) => {
  const merged = withEntry(text, ENTRY);

  test('gets the entry and keeps everything else', () => {
    const value = parse(merged);
    const before = parse(text);
    expect(value.clusters.at(-1)).toEqual({ name: 'rdctl', cluster: ENTRY.cluster });
    expect(value.users.at(-1)).toEqual({ name: 'rdctl', user: ENTRY.user });
    expect(value.contexts.at(-1)).toEqual({ name: 'rdctl', context: { cluster: 'rdctl', user: 'rdctl' } });
    for (const key of ['clusters', 'contexts', 'users'] as const)
      expect(without(value, key)).toEqual(before[key] ?? []);
    expect(value['current-context']).toBe(before['current-context'] || 'rdctl');
  });

  test('keeps every foreign line', () => {
    const lines = merged.split('\n');
    const kept = text.split('\n').filter((line) => /example|secret|me$|#/.test(line) && !/[{[]$|\[\] #/.test(line));
    for (const line of kept) expect(lines).toContain(line);
  });

  test('stays unchanged when the entry exists', () => expect(withEntry(merged, ENTRY)).toBe(merged));

  test('gets a changed certificate', () => {
    const next = { ...ENTRY, user: { ...ENTRY.user, 'client-key-data': 'TkVX' } };
    const value = parse(withEntry(merged, next));
    expect(value.users.filter((item: { name: string }) => item.name === 'rdctl')).toEqual([
      { name: 'rdctl', user: next.user },
    ]);
  });

  test('has its old meaning after removal of the entry', () => {
    const left = withoutEntry(merged, 'rdctl');
    if (left === undefined) return expect(without(parse(text), 'clusters')).toEqual([]);
    const [value, before] = [parse(left), parse(text)];
    for (const key of ['clusters', 'contexts', 'users'] as const) expect(value[key] ?? []).toEqual(before[key] ?? []);
    expect(value['current-context'] || '').toBe(before['current-context'] || '');
  });
});

test.each([...texts, ['that is blank', ''], ['with nothing but a comment', '# mine\n']])(
  'a kubeconfig %s is restored byte for byte when the entry is removed',
  (_, text) => expect(withoutEntry(withEntry(text, ENTRY), 'rdctl')).toBe(text),
);

test('what a person added beside the entry stays without the marks', () => {
  const merged = withEntry('clusters: null\n', ENTRY);
  const more = merged.replace('clusters: # null before rdctl\n', '$&- name: work\n  cluster: {}\n');
  expect(withoutEntry(more, 'rdctl')).toBe('clusters:\n- name: work\n  cluster: {}\n');
});

test('an entry without marks, as earlier versions wrote it, is renewed and removed with its file', () => {
  const made = withEntry(undefined, ENTRY);
  const renewed = withEntry(made, { ...ENTRY, user: { 'client-key-data': 'TkVX' } });
  expect(parse(renewed).users).toEqual([{ name: 'rdctl', user: { 'client-key-data': 'TkVX' } }]);
  expect(withoutEntry(renewed, 'rdctl')).toBeUndefined();
  expect(withoutEntry(made.replace('clusters:\n', '$&- name: work\n'), 'rdctl')).toBe(
    'apiVersion: v1\nkind: Config\nclusters:\n- name: work\ncontexts: []\nusers: []\n',
  );
});

test('a file that was created is removed again', () => {
  const made = withEntry(undefined, ENTRY);
  expect(parse(made)['current-context']).toBe('rdctl');
  expect(withoutEntry(made, 'rdctl')).toBeUndefined();
});

test('a file with a comment by the user stays', () => {
  expect(withoutEntry(withEntry('# mine\n', ENTRY), 'rdctl')).toContain('# mine');
});

test('an entry rewritten by kubectl is removed as well', () => {
  const rewritten = stringify(parse(withEntry(KUBECTL, ENTRY)), { indentSeq: false });
  expect(withoutEntry(rewritten, 'rdctl')).toBe(KUBECTL);
});

test('a cluster of that name elsewhere belongs to the user', () => {
  const foreign = withEntry(KUBECTL, { ...ENTRY, cluster: { server: 'https://other.example' } });
  expect(withEntry(foreign, ENTRY)).toBe('foreign');
});

test.each([
  ['two documents', `${KUBECTL}---\n${KUBECTL}`, /not one document/],
  ['broken YAML', 'clusters: [\n  secret-token: {', /not YAML/],
  ['a key twice', `${KUBECTL}users: []\n`, /not YAML/],
  ['a list', '- a\n', /no.* mapping|mapping/],
  ['a text', 'secret-token\n', /mapping/],
  ['JSON', JSON.stringify(parse(KUBECTL)), /style of JSON/],
  ['an alias without an anchor', `${KUBECTL}secret: *secret-token\n`, /alias in it has no anchor/],
  ['aliases of aliases', String(HOSTILE_YAML['aliases of aliases']), /aliases repeat too much/],
  ['too many keys', String(HOSTILE_YAML['many keys']), /too many parts/],
  ['too many levels', String(HOSTILE_YAML['nested mappings']), /nested too deeply/],
  ['a list that is none', 'clusters: secret-token\n', /"clusters" in it is not a list/],
])('%s is left alone, with a message that does not quote it', (_, text, message) => {
  for (const attempt of [() => withEntry(text, ENTRY), () => withoutEntry(text, 'rdctl')]) {
    expect(attempt).toThrow(message);
    expect(attempt).not.toThrow(/secret-token/);
  }
});

test('a key that is no name is not quoted in a warning of this process', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
  expect(withEntry(`${KUBECTL}? {a: secret-token}\n: b\n`, ENTRY)).toContain('rdctl');
  expect(warn).not.toHaveBeenCalled();
});

test('foreign content survives, whatever the file contains', () => {
  const text = fc.string({ maxLength: 12 });
  const name = text.filter((value) => value !== 'rdctl');
  const list = fc.array(fc.record({ name, cluster: fc.dictionary(text, text, { maxKeys: 3 }) }), { maxLength: 3 });
  fc.assert(
    fc.property(
      list,
      fc.array(fc.record({ name, user: fc.jsonValue({ maxDepth: 2 }) }), { maxLength: 3 }),
      (clusters, users) => {
        const value = { clusters, users, 'current-context': 'x' };
        const before = stringify(value);
        const merged = withEntry(before, ENTRY);
        const after = withoutEntry(merged, 'rdctl');
        const expected = parse(before);
        expect({ contexts: [], ...parse(after ?? '{}') }).toEqual({ contexts: [], ...expected });
      },
    ),
    { numRuns: runs(200) },
  );
});
