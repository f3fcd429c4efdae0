/**
 * Every product name in one place. Ours name our files; the compatible application's
 * names are wire facts that scripts and policy readers match on.
 */
export const PRODUCT = {
  /** Directory name, service name and command of this product. */
  name: 'rdctl',
  /** Release; a test holds it equal to that in `package.json`. */
  version: '0.1.0',
  /**
   * Of what the tool and the service say to each other, under `/v2`. It increases where an older one would not understand a newer one; the first
   * ones had none. A test holds a digest of the interface, so that nobody forgets it.
   */
  revision: 1,
  /** Connection file in our data directory. */
  connectionFile: 'app-engine.json',
  /** First port that the service tries. */
  defaultPort: 6107,
  /** Version of the API that `rdctl version` reports as its target. */
  apiVersion: 'v1',
  /** Asked with HEAD whether the Internet is there: where images come from. `RDCTL_CONNECTIVITY_URL` names another. */
  connectivityUrl: 'https://registry-1.docker.io/v2/',
} as const;

/** The application whose interfaces we are compatible with. */
export const COMPATIBLE = {
  /** Product name in wire texts, registry paths and dialog titles. */
  productName: 'Rancher Desktop',
  /** Directory name below the per-user data and configuration directories. */
  directory: 'rancher-desktop',
  /** Its connection file. */
  connectionFile: 'rd-engine.json',
  /** Value of `--target` that names it. */
  target: 'rancher-desktop',
  /** Deployment profile directory on Linux. */
  policyDirectory: '/etc/rancher-desktop',
  /** Preference domain of deployment profiles on macOS. */
  policyDomain: 'io.rancherdesktop.profile',
  /** Registry keys of deployment profiles on Windows, below a hive; the second is that of older releases. */
  policyKey: 'SOFTWARE\\Policies\\Rancher Desktop',
  olderPolicyKey: 'SOFTWARE\\Rancher Desktop\\Profile',
} as const;

/** The names under which this installation is found by others: directories, files, docker context, marks in shell files. */
export interface Identity {
  /** Directory below the per-user data, configuration and cache directories. */
  directory: string;
  connectionFile: string;
  dockerContext: string;
  /** Cluster, user and context in a kubeconfig. */
  kubeContext: string;
  /** Lines around what is ours in a shell file. */
  blockStart: string;
  blockEnd: string;
  /** Name of the autostart entry: a file name on Linux (with `.desktop`) and macOS (with `.plist`), a value on Windows. */
  autostart: { linux: string; darwin: string; win32: string };
}

export const OWN_IDENTITY: Identity = {
  directory: PRODUCT.name,
  connectionFile: PRODUCT.connectionFile,
  dockerContext: PRODUCT.name,
  kubeContext: PRODUCT.name,
  blockStart: '### MANAGED BY RDCTL START (DO NOT EDIT)',
  blockEnd: '### MANAGED BY RDCTL END (DO NOT EDIT)',
  autostart: { linux: 'rdctl.desktop', darwin: 'io.rdctl.autostart.plist', win32: 'rdctl' },
};

/** In drop-in mode: the compatible application's names, where its scripts and users look for them. */
export const DROP_IN_IDENTITY: Identity = {
  directory: COMPATIBLE.directory,
  connectionFile: COMPATIBLE.connectionFile,
  dockerContext: 'rancher-desktop',
  kubeContext: 'rancher-desktop',
  blockStart: '### MANAGED BY RANCHER DESKTOP START (DO NOT EDIT)',
  blockEnd: '### MANAGED BY RANCHER DESKTOP END (DO NOT EDIT)',
  autostart: {
    linux: 'rancher-desktop.desktop',
    darwin: 'io.rancherdesktop.autostart.plist',
    win32: 'RancherDesktop',
  },
};

/** Value of `RDCTL_COMPAT` that asks for drop-in mode. */
export const DROP_IN = 'rancher-desktop';

/** Drivers that can be asked for by name; a test holds this equal to the list of drivers. */
export const DRIVER_NAMES = ['simulated', 'qemu', 'host'] as const;
