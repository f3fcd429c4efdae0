import type { Server, SettingsClient } from '../../src/client/contract.ts';
import { readFindings } from '../../src/client/diagnostics.ts';
import { runningService, type Service } from '../../src/client/session/find.ts';
import { RdError } from '../../src/errors.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand, type Io } from '../command.ts';
import { statusText } from '../views/status-text.ts';
import { jsonText, style } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import { diagnosticsText } from './diagnostics.ts';
import { driverLines, driverReports } from './doctor/drivers.ts';

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'Show what can run here, what is missing, and what is wrong',
  usage: '',
  description: `Probes the drivers of this computer; if a service is running, also shows its status and runs its checks. Needs no
service and changes nothing.
Exit codes: 0 a driver can run, and no check failed; 2 otherwise.

  rdctl doctor
  rdctl doctor -o json`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'doctor');
    const drivers = await driverReports(io);
    const service = await runningService(invocation);
    const found =
      service && (await checksOf(service.client).catch((error: unknown) => reportNoChecks(error, service, io)));
    const failed = found?.checks.some(({ passed, mute }) => !passed && !mute) ?? false;
    if (flags.output === 'json') {
      io.out(jsonText({ kind: 'Doctor', formatVersion: 1, drivers, status: service?.status, diagnostics: found }));
    } else {
      io.say(doctorText(drivers, service?.status, found, style(io.color)));
    }
    return failed || !(service || drivers.some(({ usable }) => usable)) ? 2 : 0;
  },
});

/** Reports that another application has no checks; the known facts about it and the drivers are shown anyway. */
function reportNoChecks(error: unknown, { client, status }: Service, io: Io): undefined {
  if (!(error instanceof RdError) || !client.foreign) throw error;
  io.err(`notice: ${status.product} has no checks that rdctl can run: ${error.message}.\n`);
}

async function checksOf(client: Server & SettingsClient) {
  const { settings } = await client.settings();
  return readFindings(client, true, settings);
}

function doctorText(
  drivers: Awaited<ReturnType<typeof driverReports>>,
  status: StatusDocument | undefined,
  found: Awaited<ReturnType<typeof checksOf>> | undefined,
  paint: ReturnType<typeof style>,
): string {
  const parts = [`Drivers:\n${driverLines(drivers).join('\n')}\n`];
  if (status) parts.push(statusText(status, paint));
  else parts.push('No service is running. Start one with `rdctl up`.\n');
  if (found) parts.push(diagnosticsText(found, false, paint));
  return parts.join('\n');
}
