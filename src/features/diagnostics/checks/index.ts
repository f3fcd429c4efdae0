import { type Check, foreignCheck } from '../check.ts';
import type { CheckContext } from '../context.ts';
import { clock } from './clock.ts';
import { connectedToInternet } from './connectivity.ts';
import { diskSpace } from './disk-space.ts';
import { dockerCliPlugin } from './docker-cli-plugin.ts';
import { dockerContext } from './docker-context.ts';
import { engineAnswers } from './engine.ts';
import { mobyImageStore } from './image-store.ts';
import { kubeContext, kubeVersionsAvailable } from './kubernetes.ts';
import { pathManagement } from './path-management.ts';
import { portInUse } from './port-in-use.ts';
import { secretFiles } from './secret-files.ts';
import { shellPath } from './shell-path.ts';
import { staticFalse, staticTrue } from './testing.ts';

/** Every check, in the order of the compatible application; ours follow within each category. */
export function allChecks(platform: CheckContext['platform']): readonly Check[] {
  const plugin = (name: string) => dockerCliPlugin(platform === 'win32' ? `${name}.exe` : name);
  return [
    connectedToInternet,
    portInUse,
    plugin('docker-buildx'),
    plugin('docker-compose'),
    foreignCheck('MOCK_CHECKER', 'Utilities'),
    pathManagement,
    shellPath('RD_BIN_IN_BASH_PATH', 'bash', ['-l', '-c']),
    shellPath('RD_BIN_IN_ZSH_PATH', 'zsh', ['-l', '-i', '-c']),
    secretFiles,
    diskSpace,
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
