! SPDX-License-Identifier: Apache-2.0
! Functions of a solver in Fortran.
subroutine cut_smooth(u, w, columns, rows, weight)
  implicit none
  integer, intent(in) :: columns, rows
  real, intent(in) :: u(columns, rows), weight
  real, intent(inout) :: w(columns, rows)
  integer :: r
  do r = 1, rows
    w(:, r) = u(:, r) + weight * (u(:, max(r - 1, 1)) + u(:, min(r + 1, rows)))
  end do
end subroutine

subroutine cut_fsum(u, columns, rows, total)
  implicit none
  integer, intent(in) :: columns, rows
  double precision, intent(in) :: u(columns, rows)
  double precision, intent(out) :: total
  total = sum(u)
end subroutine
