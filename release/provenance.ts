export interface Built {
  readonly commit: string;
  readonly version: string;
  /** Where the commit is from, if a forge built it. */
  readonly repository: string | undefined;
  /** Who built: a URI. */
  readonly builder: string;
  /** What `make release` was called with. */
  readonly parameters: Readonly<Record<string, string>>;
  /** SHA-256 of package-lock.json, which names all packages with their hashes. */
  readonly lock: string;
  /** The digests of the base images, by name. */
  readonly bases: Readonly<Record<string, string>>;
  /** SHA-256 of each file of the release; those of the manifests are the digests of image and chart. */
  readonly files: Readonly<Record<string, string>>;
}

/** What was built of which commit, as a statement of in-toto with the predicate of SLSA. It is not signed. */
export const provenance = ({ commit, version, repository, builder, parameters, lock, bases, files }: Built) => ({
  _type: 'https://in-toto.io/Statement/v1',
  subject: Object.entries(files).map(([name, sha256]) => ({ name, digest: { sha256 } })),
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: 'https://drawbridge.dev/make-release/v1',
      externalParameters: { version, ...parameters },
      resolvedDependencies: [
        {
          name: 'source',
          ...(repository !== undefined && { uri: `git+${repository}` }),
          digest: { gitCommit: commit },
        },
        { name: 'package-lock.json', digest: { sha256: lock } },
        ...Object.entries(bases).map(([name, digest]) => ({ name, digest: { sha256: digest.replace('sha256:', '') } })),
      ],
    },
    runDetails: { builder: { id: builder } },
  },
});
