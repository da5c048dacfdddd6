import { configMaps } from '../../api/resources.ts';
import { HeadSigner, headNames, readHeads } from '../../audit/head.ts';
import { findObject } from '../../kube/client.ts';
import { KeySecret, type KeySecretOptions, keySecretName } from './key-secret.ts';
import { grantPurpose } from './signer.ts';

/**
 * The keys of the access feature; `Purpose` lists what they sign. Earlier versions published no list of public keys, but signed audit
 * heads with the same keys. So until the list exists, such a head proves that the keys were in use.
 */
export function signingKeys(options: Omit<KeySecretOptions, 'name' | 'purpose' | 'usedBefore'>): KeySecret {
  const { client, namespace } = options;
  return new KeySecret({
    ...options,
    name: keySecretName,
    purpose: grantPurpose,
    async usedBefore({ current, previous }, callOptions) {
      const configMap = await findObject(client, configMaps, { namespace, name: headNames.access.heads }, callOptions);
      const signers = [current, ...(previous ? [previous] : [])].map((key) => new HeadSigner(key).publicKey);
      return readHeads(configMap).heads.some(({ key }) => signers.includes(key));
    },
  });
}
