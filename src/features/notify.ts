import { readFileSync } from 'node:fs';
import { CodedError, describe, quote } from '../kit/errors.ts';
import { addressOfUser, parseAddresses } from '../notify/addresses.ts';
import { type NotifyDeps, notifyControllers } from '../notify/controllers.ts';
import { createSend } from '../notify/send.ts';
import { openNotifyStores } from '../notify/stores.ts';
import { clock, type Feature, type Host, leadership, type OpenFeature, storesProblem } from './feature.ts';

/** Tells people about requests. It writes nothing on them. */
export const notify: Feature = {
  name: 'notify',
  connections: 10,
  servesHttps: false,
  readFiles({ notifyAddresses }) {
    const addressOf = addressOfUser(notifyAddresses === undefined ? new Map() : readAddresses(notifyAddresses));
    return (host) => open(host, addressOf);
  },
};

/** Throws CodedError `InvalidAddresses` that names the flag and the file. */
function readAddresses(file: string): ReadonlyMap<string, string> {
  try {
    return parseAddresses(readFileSync(file));
  } catch (cause) {
    const message = `--notify-addresses: ${quote(file, 256)} cannot be used: ${describe(cause)}; name a JSON file with an object of mail addresses by user name`;
    throw new CodedError('InvalidAddresses', message, { cause });
  }
}

async function open(host: Host, addressOf: NotifyDeps['addressOf']): Promise<OpenFeature> {
  const { config, cluster, metrics, log } = host;
  const { leaseNamespace: namespace } = config;
  const source = await cluster.identity();
  const { gate, leaderOnly } = leadership(host, { namespace, name: 'drawbridge-notify' });
  const client = leaderOnly(cluster.client);
  const stores = openNotifyStores(cluster);
  const send = createSend({ clock, allowed: config.notifyAllowCidrs ?? [] });
  return {
    gate,
    controllers: notifyControllers({ stores, client, namespace, source, send, addressOf, clock, log, metrics }),
    readiness: { 'notify-stores': () => storesProblem(stores.all) },
    close: {},
  };
}
