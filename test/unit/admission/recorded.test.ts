import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import supertest from 'supertest';
import { World } from './support.ts';

interface Recording {
  url: string;
  body: { request: { uid: string; dryRun?: boolean; object?: { spec?: { duration?: string } } } };
}

const folder = join(import.meta.dirname, '..', '..', 'fixtures', 'reviews');
const recordings = readdirSync(folder).map((name): [string, Recording] => [
  name.replace('.json', ''),
  JSON.parse(readFileSync(join(folder, name), 'utf8')),
]);

describe('reviews recorded from a real kube-apiserver', () => {
  it('cover every webhook', () => {
    const paths = new Set(recordings.map(([, { url }]) => url));
    assert.deepEqual([...paths].sort(), [
      '/mutate-crds-wizardofoz-co-v1alpha1-execaccessrequest?timeout=3s',
      '/mutate-crds-wizardofoz-co-v1alpha1-execaccesstemplate?timeout=3s',
      '/mutate-crds-wizardofoz-co-v1alpha1-podaccessrequest?timeout=3s',
      '/mutate-crds-wizardofoz-co-v1alpha1-podaccesstemplate?timeout=3s',
      '/validate-crds-wizardofoz-co-v1alpha1-execaccessrequest?timeout=3s',
      '/validate-crds-wizardofoz-co-v1alpha1-execaccesstemplate?timeout=3s',
      '/validate-crds-wizardofoz-co-v1alpha1-podaccessrequest?timeout=3s',
      '/validate-crds-wizardofoz-co-v1alpha1-podaccesstemplate?timeout=3s',
      '/watch-v1-pod?timeout=3s',
    ]);
  });

  for (const [name, { url, body }] of recordings) {
    it(`are answered: ${name}`, async () => {
      const world = new World();
      const answer = await supertest(world.app).post(url).send(body).expect(200);
      const { response } = answer.body;
      assert.equal(response.uid, body.request.uid);
      const wrongDuration = body.request.object?.spec?.duration === 'x' && url.startsWith('/validate');
      assert.equal(response.allowed, !wrongDuration, response.status?.message);
      assert.equal(world.lines.length, url.startsWith('/mutate') ? 0 : 1);
    });
  }
});
