import { expect, test } from 'vitest';
import { asTyped } from '../../cli/views/as-typed.ts';

test.each([
  [
    'Start one with `rdctl start` or `rdctl apply -f FILE`.',
    'Start one with `./rdctl start` or `./rdctl apply -f FILE`.',
  ],
  ['Start an engine:       rdctl up\n', 'Start an engine:       ./rdctl up\n'],
  ['fix: sudo apt-get install x && rdctl image build', 'fix: sudo apt-get install x && ./rdctl image build'],
  ['fix: sudo rdctl up', 'fix: sudo ./rdctl up'],
  ['  rdctl apply -f team.yaml\n  rdctl up\n', '  ./rdctl apply -f team.yaml\n  ./rdctl up\n'],
  ['another home: RDCTL_HOME=DIR rdctl up', 'another home: RDCTL_HOME=DIR ./rdctl up'],
  ['RDCTL_HOME=DIR rdctl … --driver host', 'RDCTL_HOME=DIR ./rdctl … --driver host'],
  ["Run 'rdctl COMMAND --help' for details", "Run './rdctl COMMAND --help' for details"],
  ["Run 'rdctl image fetch --help' for its flags.", "Run './rdctl image fetch --help' for its flags."],
])('%s: as it is called here', (text, typed) => {
  expect(asTyped(text, './rdctl')).toBe(typed);
});

test.each([
  'Error: rdctl needs Node',
  'Target: rdctl at /home/you',
  'rdctl client version',
  '  rdctl: drift',
  'named rdctl upper',
])('%s: is no command', (text) => {
  expect(asTyped(text, './rdctl')).toBe(text);
});

test('a path that a shell would not take as one word is quoted', () => {
  expect(asTyped('`rdctl up`', "/a b/it's/rdctl")).toBe("`'/a b/it'\\''s/rdctl' up`");
});
