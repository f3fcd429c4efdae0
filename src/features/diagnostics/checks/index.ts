import { type Check, type CheckContext, failed, foreignCheck, passed } from '../check.ts';
import { machineConfined } from './confinement.ts';
import { diskSpace, secretFiles } from './disk.ts';
import { dockerCliPlugin, dockerContext, dockerCredentialHelpers } from './docker-cli.ts';
import { clock, engineAnswers, mobyImageStore } from './engine.ts';
import { kubeContext, kubeVersionsAvailable } from './kubernetes.ts';
import { connectedToInternet, portInUse } from './network.ts';
import { pathManagement, shellPath } from './search-path.ts';

/** Returns every check, in the order of the compatible application; ours follow within each category. */
export function allChecks(platform: CheckContext['platform']): readonly Check[] {
  const plugin = (name: string) => dockerCliPlugin(platform === 'win32' ? `${name}.exe` : name);
  return [
    connectedToInternet,
    portInUse,
    plugin('docker-buildx'),
    plugin('docker-compose'),
    dockerCredentialHelpers,
    foreignCheck('MOCK_CHECKER', 'Utilities'),
    pathManagement,
    shellPath('RD_BIN_IN_BASH_PATH', 'bash', ['-l', '-c']),
    shellPath('RD_BIN_IN_ZSH_PATH', 'zsh', ['-l', '-i', '-c']),
    secretFiles,
    diskSpace,
    machineConfined,
    dockerContext,
    foreignCheck('WINDOWS_INTEGRATIONS', 'Container Engine'),
    foreignCheck('LIMA_DARWIN_VERSION', 'Container Engine'),
    foreignCheck('LIMA_OVERRIDES', 'Container Engine'),
    mobyImageStore,
    engineAnswers,
    clock,
    foreignCheck('VERIFY_WSL_INTEGRATION_KUBECONFIG', 'Kubernetes'),
    kubeContext,
    kubeVersionsAvailable,
    staticTrue,
    staticFalse,
    foreignCheck('WSL_DISTROS', 'Testing'),
    foreignCheck('WSL_INFO', 'Testing'),
  ];
}

/** Variable that enables the two fixed checks with `1`, for tests of clients. */
const VARIABLE = 'RDCTL_STATIC_CHECKS';

const isEnabled = ({ env }: CheckContext) => env[VARIABLE] === '1';

const staticTrue: Check = {
  id: 'STATIC_TRUE',
  category: 'Testing',
  applies: isEnabled,
  run: async () => [passed('This check always passes.')],
};

const staticFalse: Check = {
  id: 'STATIC_FALSE',
  category: 'Testing',
  applies: isEnabled,
  run: async () => [
    failed('This check never passes.', [{ description: `Start the service without the variable \`${VARIABLE}\`.` }]),
  ],
};
