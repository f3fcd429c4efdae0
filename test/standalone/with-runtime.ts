import { spawn } from 'node:child_process';
import { runtimeProgram } from '../../release/runtime-package.ts';
import { ownTarget, RUNTIME_VERSION } from '../../release/targets.ts';

// `node run.mjs test/standalone/with-runtime.ts [ARGUMENTS OF VITEST]`: the tests in the runtime of the standalone file instead of Node.

const target = ownTarget();
if (!target) throw new Error('there is no runtime for this computer');
const child = spawn(runtimeProgram(target), ['node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2)], {
  stdio: 'inherit',
  // The setup of the tests checks that it is in that runtime.
  env: { ...process.env, RDCTL_TEST_RUNTIME: RUNTIME_VERSION },
});
child.once('close', (code) => {
  process.exitCode = code ?? 1;
});
