import { configMaps } from '../../api/resources.ts';
import { HeadSigner, headNames, readHeads } from '../../audit/head.ts';
import { findObject } from '../../kube/client.ts';
import { KeySecret, type KeySecretOptions, keySecretName } from './key-secret.ts';
import { grantPurpose } from './signer.ts';

/**
 * The keys that requesters, authors and grants are signed with. Before there were lists of public keys, audit heads were signed with
 * these very keys: while there is no list yet, such a head shows that they were in use.
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
