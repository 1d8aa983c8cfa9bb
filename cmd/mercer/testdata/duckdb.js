// Runs the arguments, statements of SQL, in DuckDB, and prints the rows of queries as lines of JSON.
const {DuckDBInstance} = require('@duckdb/node-api');

(async () => {
	const database = await (await DuckDBInstance.create(':memory:')).connect();
	for (const statement of process.argv.slice(2)) {
		const answer = await database.runAndReadAll(statement);
		if (!/^copy/i.test(statement)) answer.getRowObjectsJson().forEach(row => console.log(JSON.stringify(row)));
	}
})();
