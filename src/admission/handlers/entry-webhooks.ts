import { isDeepStrictEqual } from 'node:util';
import type { Setter } from '../../api/inventory/cluster-inventory.ts';
import { sizeViolation } from '../../inventory/policy/entry-size.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { UserInfo } from '../codec.ts';
import { allow, type Handler, refuse } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';

const stampPath = ['spec', 'kubeconfigSetBy'] as const;

/** Mutating webhook of the entries: says who named the Secret of a supplied kubeconfig, whatever was sent. */
export const stampSetter: Handler = {
  decide({ operation, object, oldObject, user }) {
    const spec = own(object, 'spec');
    if (!isRecord(spec)) {
      return refuse({ code: 'InvalidObject', message: 'spec must be an object', field: 'spec', status: 422 });
    }
    const [ref, before] = [own(spec, 'kubeconfigSecretRef') ?? undefined, own(oldObject, 'spec')];
    const claimed = own(spec, 'kubeconfigSetBy') ?? undefined;
    if (ref === undefined) {
      return claimed === undefined ? allow : { patch: new PatchBuilder(object).remove([...stampPath]).ops };
    }
    const vouched = own(before, 'kubeconfigSetBy') ?? undefined;
    const isSame = operation === 'UPDATE' && isDeepStrictEqual(ref, own(before, 'kubeconfigSecretRef'));
    if (isSame && vouched !== undefined && isDeepStrictEqual(claimed, vouched)) return allow;
    if (user.username === '') {
      return refuse({
        code: 'MissingIdentity',
        message: 'a kubeconfig is used on behalf of whoever names it, and this call has no authenticated user',
        status: 403,
      });
    }
    // Whoever writes something else into the stamp does not get it; whoever leaves it out, as manifests do, changes nothing.
    const stamp = isSame && vouched !== undefined ? vouched : setterOf(user);
    return { patch: new PatchBuilder(object).set([...stampPath], stamp).ops };
  },
};

/** Without what only tells of the credential: it is not asked for when rights are reviewed. */
function setterOf({ username, uid, groups, extra }: UserInfo): Setter {
  const about = Object.entries(extra).filter(([key]) => !key.startsWith('authentication.kubernetes.io/'));
  return {
    username,
    uid,
    groups: [...groups],
    ...(about.length > 0 ? { extra: Object.fromEntries(about.map(([key, values]) => [key, [...values]])) } : {}),
  };
}

/** Validating webhook of the entries: nobody makes one too large to be worked with. */
export const limitEntry: Handler = {
  decide({ object, oldObject }) {
    const violation = sizeViolation(oldObject, object);
    return violation ? refuse(violation) : allow;
  },
};
