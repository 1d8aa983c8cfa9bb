// Writes the result of a query of DuckDB to duckdb.arrow and, as a stream, duckdb.arrows, in the folder that is
// the argument, and the result as text to duckdb.csv. Then it reads mercer.arrow in that folder into a table of
// DuckDB and prints sums over its columns. With a second argument, a query, it only writes the result of the
// query as a stream of Arrow to the standard output.
const fs = require('fs'), path = require('path');
const duckdb = require('@duckdb/duckdb-wasm/dist/duckdb-node-blocking.cjs');

const query = `select * from (values
	(1::tinyint, 1.5::double, 2.5::float, true, 'a', 'low'::enum('low', 'high'), date '2020-01-02', timestamp '2020-01-02 03:04:05.678', 12.345::decimal(9, 3), 7::ubigint, time '01:02:03', uuid '00000000-0000-0000-0000-000000000001', -3::bigint),
	(null, null, null, null, null, null, null, null, null, null, null, null, null),
	(-128, -0.1, 1e30, false, 'ü, "q"', 'high', date '1969-12-31', timestamp '1969-12-31 23:59:59.999999', -0.001, 18446744073709551615, time '23:59:59.999999', uuid 'ffffffff-0000-0000-0000-000000000001', 9223372036854775807)
) t(i8, f64, f32, flag, word, level, day, moment, price, u64, clock, id, i64), range(1500) r(i) order by i, i8 nulls last`;

(async () => {
	const dist = path.dirname(require.resolve('@duckdb/duckdb-wasm/dist/duckdb-node-blocking.cjs'));
	const bundle = name => ({mainModule: path.join(dist, name), mainWorker: ''});
	const db = await duckdb.createDuckDB({mvp: bundle('duckdb-mvp.wasm'), eh: bundle('duckdb-eh.wasm')}, new duckdb.VoidLogger(), duckdb.NODE_RUNTIME);
	await db.instantiate(() => {});
	process.chdir(process.argv[2]);
	const conn = db.connect();
	const run = query => Buffer.from(db.runQuery(conn._conn ?? conn.conn, query));
	if (process.argv[3]) return process.stdout.write(streamOf(run(process.argv[3])));
	const file = run(query);
	fs.writeFileSync('duckdb.arrow', file);
	fs.writeFileSync('duckdb.arrows', streamOf(file));
	conn.query(`copy (select * replace (flag::tinyint as flag) from (${query})) to 'duckdb.csv' (header)`);

	conn.insertArrowFromIPCStream(new Uint8Array(streamOf(fs.readFileSync('mercer.arrow'))), {name: 't', schema: 'main', create: true});
	const sums = conn.query(`select count(*)::double as n, sum(x) as x, count(*) filter (isnan(y))::double as missing, sum(k)::double as k, count(distinct word)::double as words,
		string_agg(distinct word, '|' order by word) as list from t`).toArray()[0];
	console.log(JSON.stringify(sums));
})();

// streamOf returns the stream in an Arrow file, which is between the mark, 8 bytes, and the footer.
function streamOf(file) {
	const footer = file.readInt32LE(file.length - 10);
	return file.subarray(8, file.length - 10 - footer);
}
