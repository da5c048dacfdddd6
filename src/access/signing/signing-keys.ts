import { configMaps } from '../../api/resources.ts';
import { HeadSigner, headNames, readHeads } from '../../audit/head.ts';
import { findObject } from '../../kube/client.ts';
import { KeySecret, type KeySecretOptions, keySecretName } from './key-secret.ts';
import { grantPurpose } from './signer.ts';

/**
 * The keys of the access feature; the type `Purpose` in signer.ts lists what they sign. Earlier versions published no public keys, but
 * signed audit heads with keys derived from the same Secret. So until the ConfigMap exists, `usedBefore` looks for a head with such a key,
 * which shows that this installation used the Secret before.
 */
export function signingKeys(
  options: Omit<KeySecretOptions, 'name' | 'purpose' | 'rereadMs' | 'usedBefore'>,
): KeySecret {
  const { client, namespace } = options;
  return new KeySecret({
    ...options,
    name: keySecretName,
    purpose: grantPurpose,
    rereadMs: 30_000,
    async usedBefore({ current, previous }, callOptions) {
      const configMap = await findObject(client, configMaps, { namespace, name: headNames.access.heads }, callOptions);
      const publicKeys = [current, ...(previous ? [previous] : [])].map((key) => new HeadSigner(key).publicKey);
      return readHeads(configMap).heads.some(({ key }) => publicKeys.includes(key));
    },
  });
}
