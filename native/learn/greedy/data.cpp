#include "learn/greedy/data.hpp"

#include "learn/loop/encoded_rows.hpp"

namespace hardwood {

void RankedColumn::rank_all(const std::vector<float>& column, const std::vector<bool>* is_missing) {
  const std::size_t n = column.size();
  std::vector<std::uint64_t> keys, spare;
  keys.reserve(n);
  for (std::size_t i = 0; i < n; ++i)
    if (!is_missing || !(*is_missing)[i])
      keys.push_back(std::uint64_t{ordered_bits(column[i])} << 32 | i);
  sort_by_upper_half(keys, spare, 4);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (i == 0 || keys[i] >> 32 != keys[i - 1] >> 32)
      values.push_back(from_ordered_bits(static_cast<std::uint32_t>(keys[i] >> 32)));
  const auto fill = [&](auto& ranks) {
    ranks.assign(n, static_cast<std::uint16_t>(0));
    std::fill(ranks.begin(), ranks.end(), missing());
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      rank += i > 0 && keys[i] >> 32 != keys[i - 1] >> 32;
      ranks[keys[i] & 0xFFFFFFFFu] = rank;
    }
  };
  if (values.size() < 0xFFFFu)
    fill(narrow_);
  else
    fill(wide_);
}

GreedyData::GreedyData(const Problem& problem, bool with_rows, int n_threads)
    : n_rows_(static_cast<int>(problem.train.size())),
      stride_(padded(problem.n_columns())),
      columns_(problem.n_columns()) {
  Buffer<float> rows =
      encode_all(problem.encoding, problem.source, problem.train, stride_, n_threads);
  rank_columns(problem, rows, n_threads);
  if (with_rows) rows_ = std::move(rows);
}

void GreedyData::rank_columns(const Problem& problem, const Buffer<float>& rows, int n_threads) {
  const Encoding& e = problem.encoding;
  for (int j = 0; j < e.n_numeric; ++j) {
    const int flag = e.flag[e.numeric_feature[j]];
    if (flag >= 0) columns_[j].flag = e.n_numeric + flag;
  }
  parallel_for(n_columns(), n_threads, [&](int c) {
    RankedColumn& column = columns_[c];
    std::vector<float> values(n_rows_);
    for (int i = 0; i < n_rows_; ++i) values[i] = rows[i * stride_ + c];
    std::vector<bool> is_missing;
    if (column.flag >= 0) {
      is_missing.resize(n_rows_);
      for (int i = 0; i < n_rows_; ++i) is_missing[i] = rows[i * stride_ + column.flag] != 0;
    }
    column.rank_all(values, column.flag >= 0 ? &is_missing : nullptr);
  });
}

}  // namespace hardwood
