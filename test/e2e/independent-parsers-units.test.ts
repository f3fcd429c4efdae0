import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { launchdJob, windowsTask } from '../../src/features/service-units/unit-files.ts';
import { whyNoIndependentPrograms } from '../helpers/proof/program.ts';
import { readPlists, readXmls, type XmlElement } from '../helpers/proof/python.ts';
import { againstPlistRules } from '../helpers/proof/xmllint.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Words of a home in several scripts, with what XML must escape. */
const HOME = String.raw`D:\用户 & <b>'s\😀`;
const reason = whyNoIndependentPrograms(['python3', 'xmllint']);

/** The units of the systems that no test runs on, read by programs that are not ours. */
describe.skipIf(reason !== undefined)('a unit is read back as it was meant', () => {
  test('a launchd job: a valid property list with every word and variable', () => {
    const file = join(temporaryDirectory(), 'job.plist');
    const command = ['/Applications/a "b" & <c>/rdctl', 'serve'];
    writeFileSync(file, launchdJob('io.rdctl.service', { command, environment: { RDCTL_HOME: HOME } }));
    expect(againstPlistRules([file])).toBe('');
    expect(readPlists([file])).toEqual([
      {
        value: [
          'dict',
          expect.arrayContaining([
            ['Label', ['string', 'io.rdctl.service']],
            ['ProgramArguments', ['array', command.map((word) => ['string', word])]],
            ['EnvironmentVariables', ['dict', [['RDCTL_HOME', ['string', HOME]]]]],
            ['RunAtLoad', ['boolean', true]],
            ['KeepAlive', ['dict', [['SuccessfulExit', ['boolean', false]]]]],
            ['ThrottleInterval', ['integer', '10']],
          ]),
        ],
      },
    ]);
  });

  test('a task: XML in UTF-16 with the command, its arguments and the user', () => {
    const file = join(temporaryDirectory(), 'task.xml');
    const command = [String.raw`C:\Program Files\a & b\rdctl.exe`, 'serve'];
    const text = windowsTask({ command, environment: { RDCTL_HOME: HOME } }, String.raw`PC\李 & <o>`);
    writeFileSync(file, Buffer.from(`\uFEFF${text}`, 'utf16le'));
    const [read] = readXmls([file]);
    if (!read || !('value' in read)) throw new Error(`not read: ${JSON.stringify(read)}`);
    const task = read.value;
    expect([task.tag, task.attributes]).toEqual(['Task', { version: '1.2' }]);
    expect(textAt(task, 'Triggers', 'LogonTrigger', 'UserId')).toBe(String.raw`PC\李 & <o>`);
    expect(textAt(task, 'Principals', 'Principal', 'LogonType')).toBe('InteractiveToken');
    expect(textAt(task, 'Settings', 'RestartOnFailure', 'Interval')).toBe('PT1M');
    expect(textAt(task, 'Actions', 'Exec', 'Command')).toBe('cmd.exe');
    expect(textAt(task, 'Actions', 'Exec', 'Arguments')).toBe(
      String.raw`/d /s /c "set "RDCTL_HOME=${HOME}" && "C:\Program Files\a & b\rdctl.exe" "serve""`,
    );
  });
});

function textAt(element: XmlElement, ...path: string[]): string | undefined {
  const [tag, ...rest] = path;
  if (tag === undefined) return element.text;
  const child = element.children.find((each) => each.tag === tag);
  return child && textAt(child, ...rest);
}
