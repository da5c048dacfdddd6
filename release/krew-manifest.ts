export interface Release {
  readonly version: string;
  /** Where the release keeps its archives. */
  readonly baseUrl: string;
  readonly archives: readonly Archive[];
}

export interface Archive {
  readonly name: string;
  readonly platform: { readonly os: string; readonly arch: string };
  /** In hexadecimal. */
  readonly sha256: string;
}

/** The manifest of the plugin of kubectl, as Krew reads it. */
export const krewManifest = ({ version, baseUrl, archives }: Release) => ({
  apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
  kind: 'Plugin',
  metadata: { name: 'drawbridge' },
  spec: {
    version: `v${version}`,
    shortDescription: 'Request, approve, and end access to pods',
    description: [
      'Requests access to pods for a while, approves requests of others, and ends access.',
      'Needs the drawbridge server in the cluster, and acts with your own credentials.',
    ].join('\n'),
    caveats: [
      'For completion, write this script to a folder in your PATH, and make it executable:',
      '  kubectl drawbridge completion kubectl > kubectl_complete-drawbridge',
    ].join('\n'),
    platforms: archives.map(({ name, platform, sha256 }) => ({
      selector: { matchLabels: platform },
      uri: `${baseUrl}/${name}`,
      sha256,
      bin: 'drawbridge',
      files: [
        { from: 'drawbridge', to: '.' },
        { from: 'LICENSE', to: '.' },
      ],
    })),
  },
});
